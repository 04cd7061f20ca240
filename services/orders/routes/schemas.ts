/** The schemas of the routes. They are the contract (seed 004). */
import { named, oneOf, orNull } from "@todoke/contracts/api";
import { RequestTime, withDescription } from "@todoke/http";
import { Type } from "typebox";
import { scaleMax, wholeMax } from "../order/decimal.ts";
import { executions, orderStatuses, reasonCodes } from "../order/order-status.ts";
import { tradingModes } from "../store/trading-state.ts";

/** Visible ASCII. */
export const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]*$",
  description: "The same key as in the header Idempotency-Key.",
});
export const OrderId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[\\x21-\\x7e]*$",
  description: "Your own ID of the order, in visible ASCII.",
  examples: ["o-1001"],
});
const UserId = Type.String({
  minLength: 1,
  maxLength: 128,
  description:
    "The player for whom the order is placed. The player is notified of the order; without it, no notification is sent.",
  examples: ["u_123"],
});
export const Instrument = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "What is traded.",
  examples: ["BTC-USD"],
});
export const RowId = Type.String({
  pattern: "^[1-9][0-9]{0,17}$",
  description: "Our ID of the order.",
  examples: ["42"],
});
export const Status = oneOf(orderStatuses, { title: "OrderStatus" });
const Side = oneOf(["BUY", "SELL"], { title: "Side" });
const TimeInForce = oneOf(["IOC", "FOK", "GTC"], {
  title: "TimeInForce",
  description: "How long the order is in force: immediate or cancel, fill or kill, good till cancelled.",
});
const ReasonCode = oneOf(reasonCodes, { title: "OrderReasonCode", description: "Why the order failed, for programs." });
const TradingMode = oneOf(tradingModes, {
  title: "TradingMode",
  description: "halt: nothing is sent to the broker. cancel-only: only cancels are.",
});

/** Exact and more than 0. A number that a double would change is rejected; it can be sent as a string. */
const Positive = (description: string) =>
  Type.Union(
    [
      Type.Number({ exclusiveMinimum: 0 }),
      Type.String({
        maxLength: 64,
        pattern: `^(?!0(?:\\.0+)?$)(?:0|[1-9][0-9]{0,${wholeMax - 1}})(?:\\.[0-9]{1,${scaleMax}})?$`,
      }),
    ],
    { description: `${description} A JSON number or a decimal in a string.`, examples: [0.5, "0.5"] },
  );

export const OrderBody = named("AcceptOrderRequest", {
  idempotency_key: IdempotencyKey,
  order_id: OrderId,
  user_id: Type.Optional(UserId),
  instrument: Instrument,
  side: Side,
  qty: Positive("The quantity."),
  price: Type.Union([Type.Null(), Positive("The limit price.")], {
    description: "The limit price; null for a market order.",
    examples: ["30000.5"],
  }),
  time_in_force: Type.Optional(withDescription(TimeInForce, "Default: IOC.")),
  tags: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 32 }), {
      maxItems: 8,
      description: "Labels of your own.",
      examples: [["rebalance"]],
    }),
  ),
  requested_at: RequestTime({ description: "When you decided to place the order." }),
  risk_constraints: Type.Optional(
    named("RiskConstraints", {
      max_notional: Type.Optional(Positive("The limit of qty times price.")),
      max_slippage_bps: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 10_000,
          description:
            "For a market order: how many basis points the fill price may be worse than the mid price. The broker rejects an order " +
            "that it cannot fill within this. A limit order is filled at its price or better.",
        }),
      ),
    }),
  ),
  trace_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Not part of the request digest." })),
});

const time = Type.String({ format: "date-time" });
const Digest = Type.String({
  pattern: "^sha256:[0-9a-f]{64}$",
  description: "The digest of the request, by which a repeated key is compared.",
});
const Result = Type.Record(Type.String(), Type.Unknown(), { description: "The broker's result." });

export const Execution = oneOf(executions, {
  title: "Execution",
  description: "The order at the broker: open, or how it ended. Null or absent if the broker has not taken it.",
});
const FilledQty = Type.String({ description: "The filled quantity, as an exact decimal.", examples: ["0.5"] });
const AveragePrice = Type.String({
  description: "The average price of the fills, cut after 18 digits of the fraction.",
  examples: ["30000.5"],
});

/** The current result. */
export const AcceptedView = named("AcceptedOrder", {
  order_id: OrderId,
  idempotency_key: IdempotencyKey,
  status: oneOf(["accepted", "succeeded", "failed"], {
    description: "accepted: the result is not known yet.",
  }),
  request_digest: Digest,
  client_order_id: Type.String({ description: "The order's ID at the broker." }),
  accepted_at: time,
  unresolved: Type.Optional(
    Type.Literal(true, { description: "The broker has neither confirmed nor denied the order." }),
  ),
  reason_code: Type.Optional(ReasonCode),
  reason: Type.Optional(Type.String({ description: "Why the order failed." })),
  broker_order_id: Type.Optional(Type.String({ description: "The broker's own ID of the order." })),
  result: Type.Optional(Result),
  execution: Type.Optional(Execution),
  filled_qty: Type.Optional(FilledQty),
  average_price: Type.Optional(AveragePrice),
  ended_at: Type.Optional(time),
});

export const Cancel = oneOf(["requested", "sending", "done", "refused", "aborted"], {
  title: "CancelStatus",
  description: "The state of the cancel; null if none was requested.",
});

export const OrderView = named("Order", {
  id: RowId,
  caller: Type.String({ description: "Who placed the order." }),
  order_id: OrderId,
  user_id: orNull(UserId),
  idempotency_key: IdempotencyKey,
  client_order_id: Type.String({ description: "The order's ID at the broker." }),
  request_digest: Digest,
  instrument: Instrument,
  side: Side,
  qty: Type.String({ description: "The quantity, as an exact decimal.", examples: ["0.5"] }),
  price: orNull(Type.String({ description: "The limit price, as an exact decimal.", examples: ["30000.5"] })),
  time_in_force: TimeInForce,
  tags: Type.Array(Type.String()),
  adapter: Type.String({ description: "The kind of broker." }),
  status: Status,
  attempts: Type.Integer({ description: "How often a worker has claimed the order." }),
  reason_code: orNull(ReasonCode),
  reason: orNull(Type.String()),
  broker_order_id: orNull(Type.String()),
  result: orNull(Result),
  execution: orNull(Execution),
  filled_qty: FilledQty,
  average_price: orNull(AveragePrice),
  in_doubt_since: orNull(
    Type.String({ format: "date-time", description: "Since when the order is unresolved; null if it is not." }),
  ),
  cancel: orNull(Cancel),
  next_attempt_at: orNull(
    Type.String({ format: "date-time", description: "When a worker claims the order next; null if none will." }),
  ),
  created_at: time,
  updated_at: time,
  ended_at: orNull(time),
});

export const StepView = named("OrderTransition", {
  place: Type.Integer({ description: "The version of the order after the transition." }),
  from: orNull(Status),
  to: Status,
  attempt: Type.Integer({ description: "The attempts so far." }),
  code: orNull(Type.String({ description: "Why, for programs." })),
  detail: orNull(Type.String({ description: "Why, for people." })),
  at: time,
  by: Type.String({ description: "The caller, operator or worker that made the transition." }),
});

export const FillView = named("OrderFill", {
  trade_id: Type.String({ description: "The broker's ID of the trade." }),
  place: Type.Integer({ description: "The version of the order after the fill." }),
  qty: Type.String({ description: "As an exact decimal." }),
  price: Type.String({ description: "As an exact decimal." }),
  filled_at: Type.String({ format: "date-time", description: "By the broker's clock." }),
  recorded_at: time,
});

export const ListQuery = {
  status: Type.Optional(Status),
  instrument: Type.Optional(Instrument),
  order_id: Type.Optional(OrderId),
  user_id: Type.Optional(UserId),
  from: Type.Optional(RequestTime({ description: "Accepted at this time or later." })),
  to: Type.Optional(RequestTime({ description: "Accepted before this time." })),
};

export const TradingStateView = named("TradingState", {
  scope: Type.String({ description: "* for all instruments, or an instrument." }),
  mode: TradingMode,
  reason: Type.String(),
  set_by: Type.String({ description: "The caller that set it." }),
  set_at: time,
});
