/** Grants and revokes. */
import { type HttpApp, IdempotencyHeaders, idempotencyKey, requires, sendAnswer } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { ChangeBody, GrantBody, UserEntitlementView } from "./schemas.ts";

/** Part of the scope of every key: a command that is sent again by another way is found by it. */
export const paths = { grant: "/v1/entitlements/grants", revoke: "/v1/entitlements/revokes" } as const;

export function entitlementRoutes(app: HttpApp, deps: Deps): void {
  const change = (
    path: string,
    {
      body,
      status,
      ...about
    }: {
      body: typeof GrantBody | typeof ChangeBody;
      status: "ACTIVE" | "REVOKED";
      operationId: string;
      summary: string;
    },
  ) =>
    app.post(
      path,
      {
        ...requires(deps.authenticate, { key: "entitlements:write" }),
        schema: {
          ...about,
          headers: IdempotencyHeaders,
          body,
          response: { 200: UserEntitlementView, 201: UserEntitlementView },
        },
      },
      async (request, reply) => {
        const key = idempotencyKey(request, request.caller);
        return sendAnswer(reply, await deps.changeEntitlement({ key, status, ...request.body }));
      },
    );
  change(paths.grant, {
    operationId: "grantEntitlement",
    summary: "Lets a user use a product, for ever or until a time",
    status: "ACTIVE",
    body: GrantBody,
  });
  change(paths.revoke, {
    operationId: "revokeEntitlement",
    summary: "Takes a product back from a user",
    status: "REVOKED",
    body: ChangeBody,
  });
}
