/** Grants, revokes and what a user has. The schemas are the contract (seed 000). */
import { type HttpApp, IdempotencyHeaders, idempotencyKey, requires, sendAnswer } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectEntitlements } from "../store/entitlements.ts";

const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["u_123"] });
const StockKeepingUnit = Type.String({ minLength: 1, maxLength: 128, examples: ["item1"] });

const ChangeBody = Type.Object({
  user_id: UserId,
  stock_keeping_unit: StockKeepingUnit,
  reason: Type.String({ minLength: 1, maxLength: 64, examples: ["purchase", "refund"] }),
  purchase_id: Type.String({ minLength: 1, maxLength: 128, examples: ["p_456"] }),
});

const EntitlementStatus = Type.Union([Type.Literal("ACTIVE"), Type.Literal("REVOKED")]);

const EntitlementView = Type.Object({
  stock_keeping_unit: StockKeepingUnit,
  status: EntitlementStatus,
  version: Type.Integer({ minimum: 1 }),
  updated_at: Type.String({ format: "date-time" }),
});

const ChangedView = Type.Object({ user_id: UserId, ...EntitlementView.properties });
const UserEntitlementsView = Type.Object({ user_id: UserId, entitlements: Type.Array(EntitlementView) });

export function entitlementRoutes(app: HttpApp, deps: Deps): void {
  const change = (path: string, operationId: string, status: "ACTIVE" | "REVOKED", summary: string) =>
    app.post(
      path,
      {
        ...requires(deps.authenticate, "entitlements:write"),
        schema: {
          operationId,
          summary,
          headers: IdempotencyHeaders,
          body: ChangeBody,
          response: { 200: ChangedView, 201: ChangedView },
        },
      },
      async (request, reply) => {
        const key = idempotencyKey(request, request.caller);
        return sendAnswer(reply, await deps.changeEntitlement({ key, status, ...request.body }));
      },
    );
  change("/v1/entitlements/grants", "grantEntitlement", "ACTIVE", "Lets a user use a product");
  change("/v1/entitlements/revokes", "revokeEntitlement", "REVOKED", "Takes a product back from a user");

  app.get(
    "/v1/users/:user_id/entitlements",
    {
      ...requires(deps.authenticate, "read"),
      schema: {
        operationId: "listEntitlements",
        summary: "What a user has, and has had",
        params: Type.Object({ user_id: UserId }),
        response: { 200: UserEntitlementsView },
      },
    },
    async (request) => {
      const { user_id } = request.params;
      return { user_id, entitlements: await selectEntitlements(deps.db, user_id) };
    },
  );
}
