/** Grants and revokes. */
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, sendResponse } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { expiryInThePast } from "../problems.ts";
import { ChangeBody, GrantBody, UserEntitlementView } from "./schemas.ts";

/** Part of the scope of every key, so that the batch route finds the same key. */
export const paths = { grant: "/v1/entitlements/grants", revoke: "/v1/entitlements/revokes" } as const;

const response = { 200: UserEntitlementView, 201: UserEntitlementView };

export function entitlementRoutes(app: HttpApp, { authenticate, grantEntitlement, revokeEntitlement }: Deps): void {
  const callers = { key: "entitlements:write" } as const;
  app.post(
    paths.grant,
    guarded(authenticate, callers, {
      operationId: "grantEntitlement",
      summary: "Grant an entitlement",
      tags: ["Entitlements"],
      description:
        "Grants a product to a user. The grant ends at `expires_at`, or never. Returns 201 for the user's first change of the product, else 200.",
      headers: IdempotencyHeaders,
      body: GrantBody,
      refusals: [expiryInThePast],
      response,
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      return sendResponse(reply, await grantEntitlement({ key, ...request.body }));
    },
  );
  app.post(
    paths.revoke,
    guarded(authenticate, callers, {
      operationId: "revokeEntitlement",
      summary: "Revoke an entitlement",
      tags: ["Entitlements"],
      description:
        "Revokes a product from a user. A product that was never granted can be revoked too. Returns 201 for the user's first change of the product, else 200.",
      headers: IdempotencyHeaders,
      body: ChangeBody,
      response,
    }),
    async (request, reply) => {
      const key = idempotencyKey(request, request.caller);
      return sendResponse(reply, await revokeEntitlement({ key, ...request.body }));
    },
  );
}
