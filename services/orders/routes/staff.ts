/** Routes for staff: resolving orders, and the last reconciliations with the broker. */
import { named, orNull, ResolveOrderBody } from "@todoke/contracts/api";
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, sendResponse, staffActor } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { orderInHand, orderNotFound, orderNotUnresolved, orderWindowOpen } from "../problems.ts";
import { selectReconciliations } from "../store/reconciliations.ts";
import { operators } from "./access.ts";
import { OrderView, RowId } from "./schemas.ts";

const time = orNull(Type.String({ format: "date-time" }));

const Reconciliations = named("Reconciliations", {
  reconciliations: Type.Array(
    named("Reconciliation", {
      adapter: Type.String({ description: "The kind of broker." }),
      last_started_at: time,
      last_ok_at: time,
      last_error: orNull(Type.String()),
      seen: Type.Integer({ description: "Orders that the broker listed." }),
      mismatches: Type.Integer({ description: "Orders that the broker and we see differently." }),
      details: Type.Unknown({ description: "The first mismatches." }),
    }),
  ),
});

export function staffRoutes(app: HttpApp, { authenticate, db, resolveOrderAsStaff }: Deps): void {
  app.post(
    "/v1/admin/orders/:id([^/:]+)::resolve",
    guarded(authenticate, operators, {
      operationId: "resolveOrder",
      summary: "Resolve an order",
      tags: ["Orders"],
      description:
        "Decides whether the broker has an order that it has neither confirmed nor denied. A wrong decision loses the order, or has it taken twice.",
      params: Type.Object({ id: RowId }),
      headers: IdempotencyHeaders,
      body: ResolveOrderBody,
      refusals: [orderInHand, orderNotFound, orderNotUnresolved, orderWindowOpen],
      response: { 200: OrderView },
    }),
    async (request, reply) => {
      const { broker_order_id: brokerOrderId, ...body } = request.body;
      const key = idempotencyKey(request, request.caller);
      const { id } = request.params;
      return sendResponse(
        reply,
        await resolveOrderAsStaff({ key, actor: staffActor(request), id, brokerOrderId, ...body }),
      );
    },
  );
  app.get(
    "/v1/admin/orders/reconciliations",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listReconciliations",
        summary: "List reconciliations",
        tags: ["Orders"],
        description: "Returns the last comparison of our orders with those of each broker.",
        response: { 200: Reconciliations },
      },
    ),
    async () => ({ reconciliations: await selectReconciliations(db) }),
  );
}
