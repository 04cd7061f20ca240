/** Actions on users: deletion by the user or an admin, all others by staff. Each is applied once per key and audited. */

import { ReasonBody, RoleBody, SuspendBody, UserView } from "@todoke/contracts/api";
import {
  type AccessRule,
  guarded,
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  type StaffRole,
  sendResponse,
} from "@todoke/http";
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
  readonly command: (request: UserActionRequest & { readonly role: StaffRole }) => Promise<CommandResponse>;
  readonly allowed: AccessRule;
}

// The pattern ends the id before the colon; without it the router would read the id and the action as one parameter.
const user = "/:user_id([^/:]+)";

export function userActionRoutes(app: HttpApp, deps: Deps): void {
  const route = (path: string, { body, command, allowed, refusals = [], ...texts }: UserActionRoute) =>
    app.post(
      path,
      guarded(deps.authenticate, allowed, {
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
          ...(request.body as { readonly reason: string; readonly role: StaffRole }),
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
    description: "The suspension ends at `until`, or when staff reinstates the user. Suspending again replaces both.",
    body: SuspendBody,
    refusals: [ownSuspension, suspensionEndInThePast],
    command: deps.suspendUser,
    allowed: { staff: "OPERATOR" },
  });
  route(`/admin/users${user}::reinstate`, {
    operationId: "reinstateUser",
    summary: "Reinstate a user",
    description: "Ends the suspension. A user who is not suspended stays unchanged.",
    body: ReasonBody,
    command: deps.reinstateUser,
    allowed: { staff: "OPERATOR" },
  });
  route(`/admin/users${user}::grant-role`, {
    operationId: "grantRole",
    summary: "Grant a role",
    description: "Grants a role of staff. A user who has the role already stays unchanged.",
    body: RoleBody,
    command: deps.grantRole,
    allowed: { staff: "ADMIN" },
  });
  route(`/admin/users${user}::revoke-role`, {
    operationId: "revokeRole",
    summary: "Revoke a role",
    description: "Revokes a role of staff. The last active admin cannot give up the role ADMIN.",
    body: RoleBody,
    refusals: [lastAdmin],
    command: deps.revokeRole,
    allowed: { staff: "ADMIN" },
  });
}
