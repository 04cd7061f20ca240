/** `GET /v1/me`: the user who is logged in. It creates the user if account has none, as after a restore from a backup. */
import { UserView } from "@todoke/contracts/api";
import { type HttpApp, requires } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import type { FastifyRequest } from "fastify";
import { resolveSessionUser } from "../commands/resolve-session-user.ts";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { accountInactive, upstreamProblems } from "../problems.ts";
import { parseUser } from "../upstreams/user-view.ts";
import { sendOn } from "./forward.ts";

export function meRoute(
  app: HttpApp,
  deps: Pick<Deps, "authenticate" | "sessions" | "upstreams" | "resolveIdentity">,
): void {
  const { authenticate, sessions, upstreams } = deps;
  const resolveAgain = resolveSessionUser(deps);

  const readUser = ({ id }: FastifyRequest, user: ReturnType<typeof sessionUser>) =>
    upstreams.account.call({
      method: "GET",
      path: `/users/${user.userId}`,
      user,
      requestId: id,
      sharedAs: "users",
    });

  app.get(
    "/v1/me",
    {
      ...requires(authenticate, { user: "any" }),
      schema: {
        operationId: "getMe",
        summary: "Get yourself",
        tags: ["Account"],
        description: "Returns the user who is logged in. If account does not have the user any more, it is created.",
        passesOnRefusals: true,
        refusals: Object.values(upstreamProblems.account),
        responseHeaders: ["etag"],
        response: { 200: UserView },
      },
    },
    async (request, reply) => {
      const response = await readUser(request, sessionUser(request)).catch(async (error) => {
        if (!(error instanceof Problem && error.code === "user-not-found")) throw error;
        return readUser(request, await resolveAgain(request.session));
      });
      await rejectInactive(response.value);
      return sendOn(reply, response);
    },
  );

  /** The gateway's copy may lag behind by an event; account's response does not. */
  async function rejectInactive(value: unknown): Promise<void> {
    if ((value as { status?: unknown }).status === "ACTIVE") return;
    const user = parseUser(value);
    await sessions.saveUser(user);
    throw accountInactive(user.status === "DELETED" ? "this account was deleted" : "this account is suspended");
  }
}
