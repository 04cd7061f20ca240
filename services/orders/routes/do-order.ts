/** Orders by idempotency key: place, get, cancel. A key belongs to its caller. */
import { guarded, type HttpApp, IdempotencyHeaders, idempotencyKey, problems, sendResponse } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { scaleMax, wholeMax } from "../order/decimal.ts";
import { parseOrderRequest } from "../order/order-request.ts";
import {
  exposureLimitExceeded,
  idempotencyKeyMismatch,
  instrumentNotAllowed,
  limitExceeded,
  orderEnded,
  orderIdUsed,
  orderNotFound,
  orderRateExceeded,
  priceNotAllowed,
  priceRequired,
  quantityNotAllowed,
  reconciliationFailing,
  slippageNotLimited,
  tradingHalted,
} from "../problems.ts";
import { selectOrderByKey } from "../store/orders.ts";
import { readers, writers } from "./access.ts";
import { AcceptedView, IdempotencyKey, OrderBody, OrderView } from "./schemas.ts";

const OneKey = Type.Object({ idempotency_key: IdempotencyKey });

export function doOrderRoutes(app: HttpApp, deps: Deps): void {
  acceptRoute(app, deps);
  getRoute(app, deps);
  cancelRoute(app, deps);
}

function acceptRoute(app: HttpApp, { authenticate, acceptOrder }: Deps): void {
  app.post(
    "/do/order",
    guarded(authenticate, writers, {
      operationId: "acceptOrder",
      summary: "Accept an order",
      description:
        "Returns 201, or 200 with the current result if the key was used for the same order before. The order is stored first and " +
        "then sent to the broker; its status tells the result.",
      tags: ["Orders"],
      headers: IdempotencyHeaders,
      body: OrderBody,
      refusals: [
        exposureLimitExceeded,
        idempotencyKeyMismatch,
        instrumentNotAllowed,
        limitExceeded,
        orderIdUsed,
        orderRateExceeded,
        priceNotAllowed,
        priceRequired,
        quantityNotAllowed,
        reconciliationFailing,
        slippageNotLimited,
        tradingHalted,
      ],
      response: {
        200: AcceptedView,
        201: AcceptedView,
      },
    }),
    async (request, reply) => {
      const { body, caller } = request;
      if (idempotencyKey(request, caller).key !== body.idempotency_key)
        throw idempotencyKeyMismatch("Send the same key in the header Idempotency-Key and in body.idempotency_key.", {
          fields: [{ field: "body.idempotency_key", detail: "is not the key in the header" }],
        });
      const order = parseOrderRequest(body);
      if ("notDecimal" in order)
        throw problems.invalidField(
          `body.${order.notDecimal}`,
          `must have at most ${wholeMax} digits before the point and ${scaleMax} after it`,
        );
      return sendResponse(reply, await acceptOrder({ caller, body, order }));
    },
  );
}

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/do/order/:idempotency_key",
    guarded(authenticate, readers, {
      operationId: "getOrderByKey",
      summary: "Get an order by its key",
      description: "Returns the order that you placed under this idempotency key.",
      tags: ["Orders"],
      params: OneKey,
      refusals: [orderNotFound],
      response: { 200: OrderView },
    }),
    async ({ params, caller }) => {
      const order = await selectOrderByKey(db, { caller, idempotencyKey: params.idempotency_key });
      if (!order) throw orderNotFound("You have no order under this key.");
      return order;
    },
  );
}

function cancelRoute(app: HttpApp, { authenticate, cancelOrder }: Deps): void {
  app.post(
    "/do/order/:idempotency_key/cancel",
    guarded(authenticate, writers, {
      operationId: "cancelOrder",
      summary: "Cancel an order",
      description:
        "Returns 200 if the order was not sent and is aborted, or 202 if the broker has to be asked. Repeating the call has no effect.",
      tags: ["Orders"],
      params: OneKey,
      refusals: [orderEnded, orderNotFound],
      response: { 200: OrderView, 202: OrderView },
    }),
    async ({ params, caller }, reply) => {
      const { result, order } = await cancelOrder({ caller, idempotencyKey: params.idempotency_key });
      return reply.code(result === "cancelled" ? 200 : 202).send(order);
    },
  );
}
