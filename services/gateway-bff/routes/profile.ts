/**
 * A user at one look: account, entitlements, points and matchmaking, asked at once, each with its own time. A part that
 * failed says so and why, and the others are served; what a user has is shown as it was last known, marked as stale, while
 * its service is down. The whole takes as long as its slowest part may, and no longer. What a service said is in it word for
 * word: a number that JavaScript would round is the number that the service wrote.
 */
import { type HttpApp, requires } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { languageOf } from "../language.ts";
import { profileUnavailable } from "../problems.ts";
import { tellPart } from "../telemetry.ts";
import { inLanguage } from "../texts.ts";
import type { Answer, UpstreamName } from "../upstreams/index.ts";
import { sendJson } from "./forward.ts";
import { lastKnown } from "./last-known.ts";
import { AsTheServiceSays, TicketId, Time, UserId, UserView } from "./schemas.ts";
import { userOf } from "./user-of.ts";

type Part =
  /** `body` is JSON, as it came. */
  | { readonly status: "ok" | "stale"; readonly body: string; readonly asOf: string }
  | { readonly status: "failed"; readonly code: string; readonly detail: string }
  | { readonly status: "absent" };

interface Asked {
  readonly userId: string;
  readonly ticketId: string | undefined;
}

interface PartOf {
  readonly upstream: UpstreamName;
  /** Undefined when there is nothing to ask. */
  readonly path: (asked: Asked) => string | undefined;
}

const parts = {
  account: { upstream: "account", path: ({ userId }) => `/users/${userId}` },
  entitlements: { upstream: "entitlement", path: ({ userId }) => `/v1/users/${userId}/entitlements` },
  points: { upstream: "points", path: ({ userId }) => `/v1/points/users/${userId}/balance` },
  matchmaking: {
    upstream: "matchmaking",
    path: ({ ticketId }) => ticketId && `/v1/matchmaking/tickets/${encodeURIComponent(ticketId)}`,
  },
} as const satisfies Record<string, PartOf>;
type PartName = keyof typeof parts;
const partNames = Object.keys(parts) as PartName[];

const partView = (value: typeof UserView | typeof AsTheServiceSays) =>
  Type.Union([
    Type.Object({ status: Type.Literal("ok"), value, as_of: Time }),
    Type.Object({
      status: Type.Literal("stale", { description: "As it last was: the service is down." }),
      value,
      as_of: Time,
    }),
    Type.Object({ status: Type.Literal("failed"), code: Type.String(), detail: Type.String() }),
    Type.Object({
      status: Type.Literal("absent", { description: "The service is not deployed here, or no ticket is named." }),
    }),
  ]);

const ProfileView = Type.Object({
  user_id: UserId,
  account: partView(UserView),
  entitlements: partView(AsTheServiceSays),
  points: partView(AsTheServiceSays),
  matchmaking: partView(AsTheServiceSays),
});

export function profileRoute(app: HttpApp, deps: Deps): void {
  const ask = askParts(deps);
  app.get(
    "/v1/users/:user_id/profile",
    {
      ...requires(deps.authenticate, { user: "own" }),
      schema: {
        operationId: "showProfile",
        summary: "A user at one look; a part that cannot be had is marked, and the rest is there",
        params: Type.Object({ user_id: UserId }),
        querystring: Type.Object({ ticket_id: Type.Optional(TicketId) }),
        response: { 200: ProfileView },
      },
    },
    async (request, reply) => {
      const asked = { userId: request.params.user_id, ticketId: request.query.ticket_id };
      return sendJson(reply, profileText(asked, await ask(request, asked)));
    },
  );
}

function askParts({ upstreams, profileTimeoutMs }: Deps) {
  const known = lastKnown();

  async function askPart(name: PartName, request: FastifyRequest, asked: Asked): Promise<Part> {
    const { upstream, path: pathOf } = parts[name];
    const path = pathOf(asked);
    const service = upstreams[upstream];
    if (!service || path === undefined) return { status: "absent" };
    const user = userOf(request);
    try {
      const call = { method: "GET", path, user, requestId: request.id, timeoutMs: profileTimeoutMs } as const;
      return answered(name, asked, await service.call(call));
    } catch (error) {
      return failed(name, asked, request, error);
    }
  }

  function answered(name: PartName, { userId }: Asked, { body }: Answer): Part {
    // A service that has nothing to say (204) says so in JSON too.
    const said = { body: body || "null", asOf: new Date().toISOString() };
    if (name === "entitlements") known.remember(userId, said);
    return { status: "ok", ...said };
  }

  function failed(name: PartName, { userId }: Asked, request: FastifyRequest, error: unknown): Part {
    if (!(error instanceof Problem)) throw error;
    // A refusal is an answer; only a failure is bridged.
    const last = name === "entitlements" && error.status >= 500 ? known.recall(userId) : undefined;
    if (last) return { status: "stale", body: last.body, asOf: last.asOf };
    const { code, detail } = inLanguage(error.toJSON(), languageOf(request));
    return { status: "failed", code, detail };
  }

  return async (request: FastifyRequest, asked: Asked): Promise<readonly Part[]> => {
    const answers = await Promise.all(partNames.map((name) => askPart(name, request, asked)));
    for (const [place, name] of partNames.entries()) tellPart(name, answers[place]?.status ?? "absent");
    if (answers.every(({ status }) => status === "failed" || status === "absent")) throw unavailable(answers);
    return answers;
  };
}

/** Text around texts: what a service said is not read and written again, for that would round its numbers. */
function profileText({ userId }: Asked, answers: readonly Part[]): string {
  const texts = answers.map((part, place) => `${JSON.stringify(partNames[place])}:${partText(part)}`);
  return `{"user_id":${JSON.stringify(userId)},${texts.join(",")}}`;
}

function partText(part: Part): string {
  if (!("body" in part)) return JSON.stringify(part);
  const { status, body, asOf } = part;
  return `{"status":"${status}","value":${body},"as_of":"${asOf}"}`;
}

function unavailable(answers: readonly Part[]): Problem {
  const codes = answers.flatMap((part) => (part.status === "failed" ? [part.code] : []));
  return profileUnavailable(`no part of the profile can be had: ${codes.join(", ")}`, { retryAfterSeconds: 1 });
}
