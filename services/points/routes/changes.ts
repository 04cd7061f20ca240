/** Adding, spending and refunding points. Adding and spending have two paths, the seed's and that of the resource. */
import { named } from "@todoke/contracts/api";
import { type HttpApp, IdempotencyHeaders, sendResponse, withDescription } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import {
  balanceOverflow,
  insufficientPoints,
  lotEndInThePast,
  notRefundable,
  refundTooLarge,
  tooManyLots,
  transactionNotFound,
} from "../problems.ts";
import { commandKey, parseAmount, parseTime, toOrigin, withAmounts } from "./request.ts";
import { AddBody, Origin, PointAmount, SpendBody, TransactionView, Uuid } from "./schemas.ts";

export function changeRoutes(app: HttpApp, deps: Deps): void {
  addRoute(app, deps, { method: "PUT", url: "/point/add", operationId: "addPoints" });
  addRoute(app, deps, { method: "POST", url: "/v1/points/additions", operationId: "addPointsV1" });
  spendRoute(app, deps, { method: "PUT", url: "/point/sub", operationId: "spendPoints" });
  spendRoute(app, deps, { method: "POST", url: "/v1/points/spends", operationId: "spendPointsV1" });
  refundRoute(app, deps);
}

interface CommandPath {
  readonly method: "POST" | "PUT";
  readonly url: string;
  readonly operationId: string;
}

function addRoute(app: HttpApp, { authenticate, addPoints }: Deps, { operationId, ...path }: CommandPath): void {
  app.route({
    ...path,
    ...withAmounts(authenticate, {
      operationId,
      summary: "Add points",
      tags: ["Points"],
      description:
        "The points never expire, or expire at `expires_at`. `PUT /point/add` and `POST /v1/points/additions` are the same.",
      headers: IdempotencyHeaders,
      body: AddBody,
      refusals: [balanceOverflow, lotEndInThePast],
      response: { 200: TransactionView },
    }),
    handler: async (request, reply) => {
      const { user_id, point_amount, expires_at, ...origin } = request.body;
      const addition = {
        userId: user_id,
        amount: BigInt(point_amount),
        expiresAt: expires_at === undefined ? null : parseTime(expires_at, "body.expires_at", "millisecond"),
        ...toOrigin(origin),
      };
      return sendResponse(reply, await addPoints(commandKey(request, "ADD"), addition));
    },
  });
}

function spendRoute(app: HttpApp, { authenticate, spendPoints }: Deps, { operationId, ...path }: CommandPath): void {
  app.route({
    ...path,
    ...withAmounts(authenticate, {
      operationId,
      summary: "Spend points",
      tags: ["Points"],
      description:
        "Points that expire soonest are spent first. A spend that exceeds the balance is refused with 409. `PUT /point/sub` " +
        "and `POST /v1/points/spends` are the same.",
      headers: IdempotencyHeaders,
      body: SpendBody,
      refusals: [insufficientPoints, tooManyLots],
      response: { 200: TransactionView },
    }),
    handler: async (request, reply) => {
      const { user_id, point_amount, ...origin } = request.body;
      const spend = { userId: user_id, amount: BigInt(point_amount), ...toOrigin(origin) };
      return sendResponse(reply, await spendPoints(commandKey(request, "SUB"), spend));
    },
  });
}

const RefundBody = named("RefundPointsRequest", {
  transaction_id: Type.String({ ...Uuid, description: "A transaction of kind SUB or CAPTURE." }),
  point_amount: Type.Optional(withDescription(PointAmount, "Default: everything that is not refunded yet.")),
  ...Origin,
});

function refundRoute(app: HttpApp, { authenticate, refundPoints }: Deps): void {
  app.post(
    "/v1/points/refunds",
    withAmounts(authenticate, {
      operationId: "refundPoints",
      summary: "Refund points",
      tags: ["Points"],
      description: "Refunds a spend or a capture. Returns the points, all or a part, to the lots that they came from.",
      headers: IdempotencyHeaders,
      body: RefundBody,
      refusals: [balanceOverflow, lotEndInThePast, notRefundable, refundTooLarge, transactionNotFound],
      response: { 201: TransactionView },
    }),
    async (request, reply) => {
      const { transaction_id, point_amount, ...origin } = request.body;
      const refund = {
        transactionId: transaction_id.toLowerCase(),
        amount: parseAmount(point_amount),
        ...toOrigin(origin),
      };
      return sendResponse(reply, await refundPoints(commandKey(request, "REFUND"), refund));
    },
  );
}
