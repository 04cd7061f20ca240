/** A user's profile: data of several services for a client, in one response. profile/ loads its parts. */
import { named, TicketId, UserView } from "@todoke/contracts/api";
import { type HttpApp, requires } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { resolveSessionUser } from "../commands/resolve-session-user.ts";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { requestLanguage } from "../language/accept-language.ts";
import { profileUnavailable } from "../problems.ts";
import { profileLoader } from "../profile/load-profile.ts";
import { type PartName, parseFields, partNames } from "../profile/parts.ts";
import { sendJson } from "./forward.ts";
import { languageHeaders } from "./inbox.ts";
import { PassThroughBody, Time, UserId } from "./schemas.ts";

/** A client that picks fields gets only those. */
const UserFields = Type.Partial(UserView, { title: "UserFields", description: "The user, or the selected fields." });

/** Null if the service has nothing to show: no open ticket. */
const PartBody = Type.Union([PassThroughBody, Type.Null()]);

const partView = (value: typeof UserFields | typeof PartBody, title: string) =>
  Type.Optional(
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
        Type.Object({ status: Type.Literal("absent", { description: "The service is not deployed." }) }),
      ],
      { title },
    ),
  );

const serviceParts = partNames
  .filter((name) => name !== "account")
  .map((name) => [name, partView(PartBody, "ProfilePart")]);

const ProfileView = named("Profile", {
  user_id: UserId,
  account: partView(UserFields, "AccountPart"),
  ...(Object.fromEntries(serviceParts) as Record<Exclude<PartName, "account">, ReturnType<typeof partView>>),
});

const ProfileQuery = Type.Object({
  ticket_id: Type.Optional(
    Type.String({ ...TicketId, description: "Show this ticket instead of the open one or that of the latest match." }),
  ),
  fields: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1_000,
      description:
        `The parts to return (${partNames.join(", ")}), or fields of them, with commas between. ` +
        "Without it: account, entitlements, points, matchmaking.",
      examples: ["account.display_name,points.balance,matchmaking,players"],
    }),
  ),
});

const texts = {
  tags: ["Account"],
  description:
    "Returns the selected parts. Only their services are called. A part that is unavailable is marked, and the others are served.",
  querystring: ProfileQuery,
  passesOnRefusals: true,
  refusals: [profileUnavailable],
  response: { 200: ProfileView },
};

export type ProfileDeps = Pick<
  Deps,
  "authenticate" | "upstreams" | "profileTimeoutMs" | "sessions" | "resolveIdentity"
>;

interface ProfileParams {
  readonly ticket_id?: string;
  readonly fields?: string;
}

export function profileRoutes(app: HttpApp, deps: ProfileDeps): void {
  const load = profileLoader(deps);
  const resolveAgain = resolveSessionUser(deps);

  const loadFor = (request: FastifyRequest, user = sessionUser(request)) => {
    const { ticket_id: ticketId, fields } = request.query as ProfileParams;
    const { userId } = user;
    const [language, requestId] = [requestLanguage(request), request.id];
    return load({ user, userId, ticketId, requestId, language, selection: parseFields(fields) });
  };
  const send = (request: FastifyRequest, reply: FastifyReply, body: string) =>
    sendJson(reply.headers(languageHeaders(requestLanguage(request))), body);

  app.get(
    "/v1/users/:user_id/profile",
    {
      ...requires(deps.authenticate, { user: "own" }),
      schema: {
        operationId: "getProfile",
        summary: "Get a profile",
        params: Type.Object({ user_id: UserId }),
        ...texts,
      },
    },
    async (request, reply) => send(request, reply, (await loadFor(request)).body),
  );
  app.get(
    "/v1/me/profile",
    {
      ...requires(deps.authenticate, { user: "any" }),
      schema: { operationId: "getMyProfile", summary: "Get your profile", ...texts },
    },
    async (request, reply) => {
      const first = await loadFor(request);
      if (!first.failed.has("user-not-found")) return send(request, reply, first.body);
      return send(request, reply, (await loadFor(request, await resolveAgain(request.session))).body);
    },
  );
}
