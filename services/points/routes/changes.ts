/** Points are added, spent and given back. Each by the seed's path and by that of its resource: the same command, the same key. */
import { type HttpApp, IdempotencyHeaders, ProblemView, requires, sendAnswer } from "@todoke/http";
import { type Static, Type } from "typebox";
import type { PointsChange } from "../commands/change-points.ts";
import type { Deps } from "../deps.ts";
import { commandKey, takesAmounts, timeOf, writers } from "./request.ts";
import { About, AddBody, PointAmount, SpendBody, TransactionView, Uuid } from "./schemas.ts";

export function changeRoutes(app: HttpApp, deps: Deps): void {
  addRoutes(app, deps);
  spendRoutes(app, deps);
  refundRoute(app, deps);
}

const addedAndSpent = { 200: TransactionView, 409: ProblemView };

function addRoutes(app: HttpApp, { authenticate, changePoints }: Deps): void {
  const add = (method: "POST" | "PUT", url: string, operationId: string) =>
    app.route({
      method,
      url,
      ...takesAmounts(requires(authenticate, writers)),
      schema: {
        operationId,
        summary: "Adds points, for ever or until a time",
        headers: IdempotencyHeaders,
        body: AddBody,
        response: { ...addedAndSpent, 422: ProblemView },
      },
      handler: async (request, reply) =>
        sendAnswer(reply, await changePoints(commandKey(request, "ADD"), additionOf(request.body))),
    });
  add("PUT", "/point/add", "addPoints");
  add("POST", "/v1/points/additions", "createAddition");
}

function additionOf({ user_id, point_amount, expires_at, ...about }: Static<typeof AddBody>): PointsChange {
  return {
    kind: "ADD",
    userId: user_id,
    amount: BigInt(point_amount),
    expiresAt: expires_at === undefined ? null : timeOf(expires_at, "body.expires_at", "millisecond"),
    ...aboutOf(about),
  };
}

function spendRoutes(app: HttpApp, { authenticate, changePoints }: Deps): void {
  const spend = (method: "POST" | "PUT", url: string, operationId: string) =>
    app.route({
      method,
      url,
      ...takesAmounts(requires(authenticate, writers)),
      schema: {
        operationId,
        summary: "Spends points, those that run out soonest first; never more than there are",
        headers: IdempotencyHeaders,
        body: SpendBody,
        response: addedAndSpent,
      },
      handler: async (request, reply) =>
        sendAnswer(reply, await changePoints(commandKey(request, "SUB"), spendOf(request.body))),
    });
  spend("PUT", "/point/sub", "subPoints");
  spend("POST", "/v1/points/spends", "createSpend");
}

function spendOf({ user_id, point_amount, ...about }: Static<typeof SpendBody>): PointsChange {
  return { kind: "SUB", userId: user_id, amount: BigInt(point_amount), ...aboutOf(about) };
}

const RefundBody = Type.Object({
  transaction_id: Type.String({ ...Uuid, description: "A SUB or a CAPTURE." }),
  point_amount: Type.Optional({ ...PointAmount, description: "All that was not given back yet, if not given." }),
  ...About,
});

function refundRoute(app: HttpApp, { authenticate, changePoints }: Deps): void {
  app.post(
    "/v1/points/refunds",
    {
      ...takesAmounts(requires(authenticate, writers)),
      schema: {
        operationId: "refundPoints",
        summary: "Gives back what was spent, all or a part, into the lots that it came from",
        headers: IdempotencyHeaders,
        body: RefundBody,
        response: { 201: TransactionView, 404: ProblemView, 409: ProblemView, 422: ProblemView },
      },
    },
    async (request, reply) => {
      const { transaction_id, point_amount, ...about } = request.body;
      const [transactionId, amount] = [transaction_id.toLowerCase(), amountOf(point_amount)];
      const change = { kind: "REFUND", transactionId, amount, ...aboutOf(about) } as const;
      return sendAnswer(reply, await changePoints(commandKey(request, "REFUND"), change));
    },
  );
}

/** Undefined: all that there is. */
export const amountOf = (digits: string | undefined): bigint | undefined =>
  digits === undefined ? undefined : BigInt(digits);

interface Said {
  readonly reason?: string;
  readonly source?: string;
  readonly source_id?: string;
}

export const aboutOf = ({ reason, source, source_id }: Said) => ({ reason, source, sourceId: source_id });
