/** Grants and revokes by staff, each with a reason. */
import { StaffGrantBody, StaffRevokeBody } from "@todoke/contracts/api";
import {
  guarded,
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  problems,
  sendResponse,
  staffActor,
} from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { expiryInThePast } from "../problems.ts";
import { UserEntitlementView, UserId } from "./schemas.ts";

const operators = { staff: "OPERATOR" } as const;
const response = { 200: UserEntitlementView, 201: UserEntitlementView };
const params = Type.Object({ user_id: UserId });

export function staffRoutes(app: HttpApp, deps: Deps): void {
  const { authenticate, grantEntitlementAsStaff, revokeEntitlementAsStaff } = deps;
  app.post(
    "/v1/admin/users/:user_id/entitlement-grants",
    guarded(authenticate, operators, {
      operationId: "grantEntitlementAsStaff",
      summary: "Grant an entitlement as staff",
      tags: ["Entitlements"],
      description:
        "Grants a product to a user, and records who did it and why. It undoes a revoke if `undoes` names it.",
      params,
      headers: IdempotencyHeaders,
      body: StaffGrantBody,
      refusals: [expiryInThePast, problems.actNotFound, problems.actAlreadyUndone],
      response,
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      const grant = { key, actor: staffActor(request), ...request.params, ...request.body };
      return sendResponse(reply, await grantEntitlementAsStaff(grant));
    },
  );
  app.post(
    "/v1/admin/users/:user_id/entitlement-revokes",
    guarded(authenticate, operators, {
      operationId: "revokeEntitlementAsStaff",
      summary: "Revoke an entitlement as staff",
      tags: ["Entitlements"],
      description:
        "Revokes a product from a user, and records who did it and why. It undoes a grant if `undoes` names it.",
      params,
      headers: IdempotencyHeaders,
      body: StaffRevokeBody,
      refusals: [problems.actNotFound, problems.actAlreadyUndone],
      response,
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      const revoke = { key, actor: staffActor(request), ...request.params, ...request.body };
      return sendResponse(reply, await revokeEntitlementAsStaff(revoke));
    },
  );
}
