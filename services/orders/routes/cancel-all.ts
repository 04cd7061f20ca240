/** Cancels open orders of all callers. */
import { named, oneOf, orNull } from "@todoke/contracts/api";
import { guarded, type HttpApp } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { cancellersOfAll } from "./access.ts";
import { Cancel, Execution, IdempotencyKey, Instrument, OrderId, RowId, Status } from "./schemas.ts";

const CancelAllBody = named("CancelAllRequest", {
  instrument: Type.Optional(Instrument),
  caller: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: "Only orders of this caller.", examples: ["desk"] }),
  ),
  after: Type.Optional(
    Type.String({
      pattern: "^[1-9][0-9]{0,17}$",
      description: "`next` of the response before.",
      examples: ["42"],
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 500, description: "Orders in one call; default 100.", examples: [100] }),
  ),
});

const CancelAllView = named("CancelAllResponse", {
  results: Type.Array(
    named("CancelledOrder", {
      result: oneOf(["cancelled", "requested", "ended"], {
        title: "CancelAllResult",
        description:
          "cancelled: it was not sent, and is aborted. requested: the broker is asked. ended: it ended in the meantime.",
      }),
      id: RowId,
      caller: Type.String({ description: "Who placed the order." }),
      idempotency_key: IdempotencyKey,
      order_id: OrderId,
      instrument: Instrument,
      status: Status,
      execution: orNull(Execution),
      cancel: orNull(Cancel),
    }),
  ),
  next: Type.Optional(RowId),
});

const defaultLimit = 100;

export function cancelAllRoutes(app: HttpApp, { authenticate, cancelAllOrders }: Deps): void {
  app.post(
    "/v1/orders/cancel-all",
    guarded(authenticate, cancellersOfAll, {
      operationId: "cancelAllOrders",
      summary: "Cancel all open orders",
      description:
        "Cancels open orders, oldest first, and returns the result of each. If there are more, the response has `next`: send it as " +
        "`after`. Repeating a call has no further effect, so it takes no Idempotency-Key. Orders that are accepted meanwhile are not " +
        "stopped: set the trading state to cancel-only first.",
      tags: ["Orders"],
      body: CancelAllBody,
      response: { 200: CancelAllView },
    }),
    async ({ body, caller: by }) => {
      const { after = "0", limit = defaultLimit, ...filter } = body;
      const { results, next } = await cancelAllOrders({ ...filter, after, limit, by });
      return {
        results: results.map(({ result, order }) => ({
          result,
          id: order.id,
          caller: order.caller,
          idempotency_key: order.idempotency_key,
          order_id: order.order_id,
          instrument: order.instrument,
          status: order.status,
          execution: order.execution,
          cancel: order.cancel,
        })),
        ...(next !== undefined && { next }),
      };
    },
  );
}
