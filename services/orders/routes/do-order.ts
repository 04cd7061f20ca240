/** Orders by their key: taken in, asked for, cancelled. A key is its caller's own: nobody meets another's. */
import {
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  ProblemView,
  problems,
  requires,
  sendAnswer,
} from "@todoke/http";
import { Type } from "typebox";
import { scaleMax, wholeMax } from "../decimal.ts";
import type { Deps } from "../deps.ts";
import { orderRequest } from "../order-request.ts";
import { idempotencyKeyMismatch, orderNotFound } from "../problems.ts";
import { selectOrderOfKey } from "../store/orders.ts";
import { readers, writers } from "./rules.ts";
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
    {
      ...requires(authenticate, writers),
      schema: {
        operationId: "acceptOrder",
        summary: "Takes an order in, once per key: 201 the first time, 200 with the result so far for the same again",
        headers: IdempotencyHeaders,
        body: OrderBody,
        response: {
          200: AcceptedView,
          201: AcceptedView,
          409: ProblemView,
          422: ProblemView,
          429: ProblemView,
          503: ProblemView,
        },
      },
    },
    async (request, reply) => {
      const { body, caller } = request;
      if (idempotencyKey(request, caller).key !== body.idempotency_key)
        throw idempotencyKeyMismatch("send the same key in the header Idempotency-Key and in body.idempotency_key", {
          fields: [{ field: "body.idempotency_key", detail: "is not the key of the header" }],
        });
      const order = orderRequest(body);
      if ("notDecimal" in order) throw notDecimal(`body.${order.notDecimal}`);
      return sendAnswer(reply, await acceptOrder({ caller, body, order }));
    },
  );
}

function notDecimal(field: string) {
  const detail = `must have at most ${wholeMax} digits before the point and ${scaleMax} behind it`;
  return problems.invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
}

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/do/order/:idempotency_key",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "getOrderByKey",
        summary: "The order that you sent under a key",
        params: OneKey,
        response: { 200: OrderView, 404: ProblemView },
      },
    },
    async ({ params, caller }) => {
      const order = await selectOrderOfKey(db, { caller, idempotencyKey: params.idempotency_key });
      if (!order) throw orderNotFound("you have no order under this key");
      return order;
    },
  );
}

function cancelRoute(app: HttpApp, { authenticate, cancelOrder }: Deps): void {
  app.post(
    "/do/order/:idempotency_key/cancel",
    {
      ...requires(authenticate, writers),
      schema: {
        operationId: "cancelOrder",
        summary: "Cancels an order: 200 if it was not sent yet, 202 if the broker has to be asked",
        params: OneKey,
        response: { 200: OrderView, 202: OrderView, 404: ProblemView, 409: ProblemView },
      },
    },
    async ({ params, caller }, reply) => {
      const { result, order } = await cancelOrder({ caller, idempotencyKey: params.idempotency_key });
      return reply.code(result === "cancelled" ? 200 : 202).send(order);
    },
  );
}
