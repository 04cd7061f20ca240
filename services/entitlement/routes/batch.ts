/**
 * Many grants and revokes in one call. It saves round trips and promises nothing about the whole: each command has its
 * own key, takes effect or not by itself, and is answered in its place. A key means the same here as on the routes for
 * one command, so that whatever became of this call, each can be sent again by either way.
 */
import { batchResults, type HttpApp, ItemKey, problems, requires, sendBatch } from "@todoke/http";
import { digestOf } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { paths } from "./entitlements.ts";
import { GrantBody, UserEntitlementView } from "./schemas.ts";

const itemsMax = 100;

/** A hundred of the longest commands, every character escaped, are half of this. */
const bodyMaxBytes = 1024 * 1024;

const Item = Type.Object({
  action: Type.Union([Type.Literal("grant"), Type.Literal("revoke")]),
  idempotency_key: ItemKey,
  ...GrantBody.properties,
});

export function batchRoute(app: HttpApp, deps: Deps): void {
  app.post(
    "/v1/entitlements/batch",
    {
      ...requires(deps.authenticate, { key: "entitlements:write" }),
      bodyLimit: bodyMaxBytes,
      schema: {
        operationId: "changeEntitlements",
        summary: "Up to 100 grants and revokes, each with its own key and its own result",
        body: Type.Object({ items: Type.Array(Item, { minItems: 1, maxItems: itemsMax }) }),
        response: { 200: batchResults(UserEntitlementView) },
      },
    },
    async (request, reply) => {
      request.body.items.forEach(refuseExpiryOfRevoke);
      // All are handed over in this turn, in order: those for one entitlement, or with one key, keep that order.
      const changes = request.body.items.map((item) => deps.changeEntitlement(changeOf(item, request.caller)));
      return sendBatch(request, reply, changes);
    },
  );
}

/** As the route for one revoke does. */
function refuseExpiryOfRevoke({ action, expires_at }: Static<typeof Item>, place: number): void {
  if (action === "grant" || expires_at === undefined) return;
  const [field, detail] = [`body.items[${place}].expires_at`, "is for grants only"];
  throw problems.invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
}

function changeOf({ action, idempotency_key, ...body }: Static<typeof Item>, caller: string) {
  const key = { scope: `${caller} POST ${paths[action]}`, key: idempotency_key, requestHash: digestOf(body) };
  return { key, status: action === "grant" ? "ACTIVE" : "REVOKED", ...body } as const;
}
