/**
 * A user's profile: account, entitlements, points and matchmaking, requested concurrently, each with its own timeout. A
 * part that failed says why, and the others are served; while entitlement is down, its last response is served as stale.
 * Responses of services are embedded byte for byte, because parsing would round large numbers.
 */
import { TicketId, UserView } from "@todoke/contracts/api";
import { type HttpApp, requires } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { requestLanguage } from "../language/accept-language.ts";
import { translate } from "../language/problem-texts.ts";
import { profileUnavailable, type UpstreamName } from "../problems.ts";
import { countProfilePart } from "../telemetry.ts";
import type { UpstreamResponse } from "../upstreams/index.ts";
import { staleCache } from "../upstreams/stale-cache.ts";
import { sendJson } from "./forward.ts";
import { PassThroughBody, Time, UserId } from "./schemas.ts";

type Part =
  /** `body` is the service's JSON. */
  | { readonly status: "ok" | "stale"; readonly body: string; readonly asOf: string }
  | { readonly status: "failed"; readonly code: string; readonly detail: string }
  | { readonly status: "absent" };

interface ProfileQuery {
  readonly userId: string;
  readonly ticketId: string | undefined;
}

interface PartSource {
  readonly upstream: UpstreamName;
  /** Undefined if there is nothing to request. */
  readonly path: (query: ProfileQuery) => string | undefined;
}

const sources = {
  account: { upstream: "account", path: ({ userId }) => `/users/${userId}` },
  entitlements: { upstream: "entitlement", path: ({ userId }) => `/v1/users/${userId}/entitlements` },
  points: { upstream: "points", path: ({ userId }) => `/v1/points/users/${userId}/balance` },
  matchmaking: {
    upstream: "matchmaking",
    path: ({ ticketId }) => ticketId && `/v1/matchmaking/tickets/${encodeURIComponent(ticketId)}`,
  },
} as const satisfies Record<string, PartSource>;
type PartName = keyof typeof sources;
const partNames = Object.keys(sources) as PartName[];

const partView = (value: typeof UserView | typeof PassThroughBody, title: string) =>
  Type.Union(
    [
      Type.Object({ status: Type.Literal("ok"), value, as_of: Time }),
      Type.Object({
        status: Type.Literal("stale", { description: "The last response: the service is down." }),
        value,
        as_of: Time,
      }),
      Type.Object({
        status: Type.Literal("failed"),
        code: Type.String({ description: "As in a problem." }),
        detail: Type.String(),
      }),
      Type.Object({
        status: Type.Literal("absent", { description: "The service is not deployed, or the query has no ticket_id." }),
      }),
    ],
    { title },
  );

const ProfileView = Type.Object(
  {
    user_id: UserId,
    account: partView(UserView, "AccountPart"),
    entitlements: partView(PassThroughBody, "ProfilePart"),
    points: partView(PassThroughBody, "ProfilePart"),
    matchmaking: partView(PassThroughBody, "ProfilePart"),
  },
  { title: "Profile" },
);

export type ProfileDeps = Pick<Deps, "authenticate" | "upstreams" | "profileTimeoutMs">;

export function profileRoute(app: HttpApp, deps: ProfileDeps): void {
  const loadParts = partLoader(deps);
  app.get(
    "/v1/users/:user_id/profile",
    {
      ...requires(deps.authenticate, { user: "own" }),
      schema: {
        operationId: "getProfile",
        summary: "Get a profile",
        tags: ["Account"],
        description:
          "Returns account, entitlements, points and matchmaking of a user. An unavailable part is marked, and the others are served.",
        params: Type.Object({ user_id: UserId }),
        querystring: Type.Object({ ticket_id: Type.Optional(TicketId) }),
        response: { 200: ProfileView },
      },
    },
    async (request, reply) => {
      const query = { userId: request.params.user_id, ticketId: request.query.ticket_id };
      return sendJson(reply, formatProfile(query, await loadParts(request, query)));
    },
  );
}

function partLoader({ upstreams, profileTimeoutMs }: ProfileDeps) {
  const lastEntitlements = staleCache();

  async function loadPart(name: PartName, request: FastifyRequest, query: ProfileQuery): Promise<Part> {
    const { upstream, path: toPath } = sources[name];
    const path = toPath(query);
    const service = upstreams[upstream];
    if (!service || path === undefined) return { status: "absent" };
    const user = sessionUser(request);
    try {
      const call = { method: "GET", path, user, requestId: request.id, timeoutMs: profileTimeoutMs } as const;
      return toPart(name, query, await service.call(call));
    } catch (error) {
      return toFailedPart(name, query, request, error);
    }
  }

  function toPart(name: PartName, { userId }: ProfileQuery, { body }: UpstreamResponse): Part {
    // A response without a body (204) becomes null.
    const part = { body: body || "null", asOf: new Date().toISOString() };
    if (name === "entitlements") lastEntitlements.set(userId, part);
    return { status: "ok", ...part };
  }

  function toFailedPart(name: PartName, { userId }: ProfileQuery, request: FastifyRequest, error: unknown): Part {
    if (!(error instanceof Problem)) throw error;
    // Only a failure is bridged; a refusal is a valid response.
    const last = name === "entitlements" && error.status >= 500 ? lastEntitlements.get(userId) : undefined;
    if (last) return { status: "stale", body: last.body, asOf: last.asOf };
    const { code, detail } = translate(error.toJSON(), requestLanguage(request));
    return { status: "failed", code, detail };
  }

  return async (request: FastifyRequest, query: ProfileQuery): Promise<readonly Part[]> => {
    const parts = await Promise.all(partNames.map((name) => loadPart(name, request, query)));
    for (const [index, name] of partNames.entries()) countProfilePart(name, parts[index]?.status ?? "absent");
    if (parts.every(({ status }) => status === "failed" || status === "absent")) throw unavailable(parts);
    return parts;
  };
}

function formatProfile({ userId }: ProfileQuery, parts: readonly Part[]): string {
  const texts = parts.map((part, index) => `${JSON.stringify(partNames[index])}:${formatPart(part)}`);
  return `{"user_id":${JSON.stringify(userId)},${texts.join(",")}}`;
}

function formatPart(part: Part): string {
  if (!("body" in part)) return JSON.stringify(part);
  const { status, body, asOf } = part;
  return `{"status":"${status}","value":${body},"as_of":"${asOf}"}`;
}

function unavailable(parts: readonly Part[]): Problem {
  const codes = parts.flatMap((part) => (part.status === "failed" ? [part.code] : []));
  return profileUnavailable(`every part of the profile failed: ${codes.join(", ")}`, { retryAfterSeconds: 1 });
}
