/**
 * Many grants and revokes in one call. It saves round trips and is not a transaction: each item has its own key and its own
 * result. A key means the same here as on the routes for one command, so each can be retried on either route.
 */
import { named, oneOf } from "@todoke/contracts/api";
import { batchResults, type HttpApp, ItemKey, problems, requires, sendBatch } from "@todoke/http";
import { digestJson } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { paths } from "./entitlements.ts";
import { GrantBody, UserEntitlementView } from "./schemas.ts";

const itemsMax = 100;

/** Twice the size of a hundred longest items with every character escaped. */
const bodyMaxBytes = 1024 * 1024;

const Item = named("EntitlementBatchItem", {
  action: oneOf(["grant", "revoke"]),
  idempotency_key: ItemKey,
  ...GrantBody.properties,
});

const BatchBody = named("ChangeEntitlementsRequest", { items: Type.Array(Item, { minItems: 1, maxItems: itemsMax }) });

export function batchRoute(app: HttpApp, { authenticate, changeEntitlements }: Deps): void {
  app.post(
    "/v1/entitlements/batch",
    {
      ...requires(authenticate, { key: "entitlements:write" }),
      bodyLimit: bodyMaxBytes,
      schema: {
        operationId: "changeEntitlements",
        summary: "Change many entitlements",
        tags: ["Entitlements"],
        description:
          "Grants and revokes up to 100 products. Each item has its own key and its own result. Results are in the order of the items.",
        body: BatchBody,
        response: { 200: batchResults(UserEntitlementView, "EntitlementBatchResult") },
      },
    },
    async (request, reply) => {
      const { items } = request.body;
      items.forEach(rejectExpiryOfRevoke);
      return sendBatch(request, reply, changeEntitlements(items.map((item) => toChange(item, request.caller))));
    },
  );
}

/** The route for one revoke rejects the field too. */
function rejectExpiryOfRevoke({ action, expires_at }: Static<typeof Item>, index: number): void {
  if (action === "grant" || expires_at === undefined) return;
  throw problems.invalidField(`body.items[${index}].expires_at`, "is for grants only");
}

function toChange({ action, idempotency_key, ...body }: Static<typeof Item>, caller: string) {
  const key = { scope: `${caller} POST ${paths[action]}`, key: idempotency_key, requestHash: digestJson(body) };
  return { action, key, ...body };
}
