/** Actions on users: deletion by the user or an admin, all others by admins. Each is applied once per key and audited. */

import { ReasonBody, RoleBody, SuspendBody, UserView } from "@todoke/contracts/api";
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, sendResponse } from "@todoke/http";
import type { CommandResponse } from "@todoke/kernel/idempotency";
import type { ProblemFactory } from "@todoke/kernel/problem";
import type { UserActionRequest } from "../commands/run-user-action.ts";
import type { Deps } from "../deps.ts";
import {
  accountInactive,
  lastAdmin,
  ownSuspension,
  suspensionEndInThePast,
  userDeleted,
  userNotFound,
} from "../problems.ts";
import { ownOrAdmin, requireActorId } from "./request.ts";
import { OneUser } from "./schemas.ts";

interface UserActionRoute {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly body: typeof SuspendBody | typeof ReasonBody | typeof RoleBody;
  readonly refusals?: readonly ProblemFactory[];
  readonly command: (request: UserActionRequest) => Promise<CommandResponse>;
  readonly allowed?: typeof ownOrAdmin;
}

// The pattern ends the id before the colon; without it the router would read the id and the action as one parameter.
const user = "/:user_id([^/:]+)";

export function userActionRoutes(app: HttpApp, deps: Deps): void {
  const route = (path: string, { body, command, allowed, refusals = [], ...texts }: UserActionRoute) =>
    app.post(
      path,
      guarded(deps.authenticate, allowed ?? { staff: "ADMIN" }, {
        ...texts,
        tags: ["Account"],
        params: OneUser,
        headers: IdempotencyHeaders,
        body,
        refusals: [accountInactive, userDeleted, userNotFound, ...refusals],
        response: { 200: UserView },
      }),
      async (request, reply) => {
        const response = await command({
          key: idempotencyKey(request, request.caller),
          actorId: requireActorId(request),
          userId: request.params.user_id,
          ...request.body,
        });
        return sendResponse(reply, response);
      },
    );
  route(`/users${user}::delete`, {
    operationId: "deleteUser",
    summary: "Delete a user",
    description: "Erases all personal data. The id remains and is not used again.",
    body: ReasonBody,
    refusals: [lastAdmin],
    command: deps.deleteUser,
    allowed: ownOrAdmin,
  });
  route(`/admin/users${user}::suspend`, {
    operationId: "suspendUser",
    summary: "Suspend a user",
    description:
      "The suspension ends at `until`, or when an admin reinstates the user. Suspending again replaces both.",
    body: SuspendBody,
    refusals: [ownSuspension, suspensionEndInThePast],
    command: deps.suspendUser,
  });
  route(`/admin/users${user}::reinstate`, {
    operationId: "reinstateUser",
    summary: "Reinstate a user",
    description: "Ends the suspension. A user who is not suspended stays unchanged.",
    body: ReasonBody,
    command: deps.reinstateUser,
  });
  route(`/admin/users${user}::grant-role`, {
    operationId: "grantRole",
    summary: "Grant the admin role",
    description: "A user who is an admin already stays unchanged.",
    body: RoleBody,
    command: deps.grantRole,
  });
  route(`/admin/users${user}::revoke-role`, {
    operationId: "revokeRole",
    summary: "Revoke the admin role",
    description: "The last active admin cannot give up the role.",
    body: RoleBody,
    refusals: [lastAdmin],
    command: deps.revokeRole,
  });
}
