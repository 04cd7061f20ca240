/** What admins do to users. Each act is carried out once per key, with its reason in the audit. */
import { type HttpApp, IdempotencyHeaders, idempotencyKey, ProblemView, requires, sendAnswer } from "@todoke/http";
import type { Answer } from "@todoke/kernel/idempotency";
import type { ActRequest } from "../commands/act-once.ts";
import type { Deps } from "../deps.ts";
import { actorOf, actPath } from "./request.ts";
import { OneUser, ReasonBody, RoleBody, SuspendBody, UserView } from "./schemas.ts";

interface ActRoute {
  readonly operationId: string;
  readonly summary: string;
  readonly body: typeof SuspendBody | typeof ReasonBody | typeof RoleBody;
  readonly command: (request: ActRequest) => Promise<Answer>;
}

export function actRoutes(app: HttpApp, deps: Deps): void {
  const route = (act: string, { body, command, ...about }: ActRoute) =>
    app.post(
      actPath("/admin/users", act),
      {
        ...requires(deps.authenticate, { admin: true }),
        schema: {
          ...about,
          params: OneUser,
          headers: IdempotencyHeaders,
          body,
          response: { 200: UserView, 404: ProblemView },
        },
      },
      async (request, reply) => {
        const asked = {
          key: idempotencyKey(request, request.caller),
          actorId: actorOf(request),
          userId: request.params.user_id,
        };
        return sendAnswer(reply, await command({ ...asked, ...request.body }));
      },
    );
  route("suspend", {
    operationId: "suspendUser",
    summary: "Keeps a user from doing anything, until a time or until reinstated; again, it replaces reason and end",
    body: SuspendBody,
    command: deps.suspendUser,
  });
  route("reinstate", {
    operationId: "reinstateUser",
    summary: "Ends a suspension",
    body: ReasonBody,
    command: deps.reinstateUser,
  });
  route("grant-role", {
    operationId: "grantRole",
    summary: "Makes a user an admin",
    body: RoleBody,
    command: deps.grantRole,
  });
  route("revoke-role", {
    operationId: "revokeRole",
    summary: "Takes the role from an admin; not from the last one",
    body: RoleBody,
    command: deps.revokeRole,
  });
}
