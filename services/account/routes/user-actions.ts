/** Actions of admins on users. Each is applied once per key; the audit has its reason. */
import { type HttpApp, IdempotencyHeaders, idempotencyKey, ProblemView, requires, sendAnswer } from "@todoke/http";
import type { Answer } from "@todoke/kernel/idempotency";
import type { UserActionRequest } from "../commands/user-actions.ts";
import type { Deps } from "../deps.ts";
import { actionPath, requireActorId } from "./request.ts";
import { OneUser, ReasonBody, RoleBody, SuspendBody, UserView } from "./schemas.ts";

interface UserActionRoute {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly body: typeof SuspendBody | typeof ReasonBody | typeof RoleBody;
  readonly command: (request: UserActionRequest) => Promise<Answer>;
}

export function userActionRoutes(app: HttpApp, deps: Deps): void {
  const route = (action: string, { body, command, ...texts }: UserActionRoute) =>
    app.post(
      actionPath("/admin/users", action),
      {
        ...requires(deps.authenticate, { admin: true }),
        schema: {
          ...texts,
          params: OneUser,
          headers: IdempotencyHeaders,
          body,
          response: { 200: UserView, 404: ProblemView },
        },
      },
      async (request, reply) => {
        const response = await command({
          key: idempotencyKey(request, request.caller),
          actorId: requireActorId(request),
          userId: request.params.user_id,
          ...request.body,
        });
        return sendAnswer(reply, response);
      },
    );
  route("suspend", {
    operationId: "suspendUser",
    summary: "Suspend a user.",
    description:
      "The suspension ends at `until`, or when an admin reinstates the user. Suspending again replaces both.",
    body: SuspendBody,
    command: deps.suspendUser,
  });
  route("reinstate", {
    operationId: "reinstateUser",
    summary: "Reinstate a user.",
    description: "Ends the suspension. A user who is not suspended stays unchanged.",
    body: ReasonBody,
    command: deps.reinstateUser,
  });
  route("grant-role", {
    operationId: "grantRole",
    summary: "Make a user an admin.",
    description: "A user who is an admin already stays unchanged.",
    body: RoleBody,
    command: deps.grantRole,
  });
  route("revoke-role", {
    operationId: "revokeRole",
    summary: "Revoke the admin role of a user.",
    description: "The last active admin cannot give up the role.",
    body: RoleBody,
    command: deps.revokeRole,
  });
}
