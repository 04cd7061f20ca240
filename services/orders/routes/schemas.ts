/** The schemas of the routes. They are the contract (seed 004). */
import { RequestTime } from "@todoke/http";
import { Type } from "typebox";
import { scaleMax, wholeMax } from "../order/decimal.ts";
import { orderStatuses, reasonCodes } from "../order/order-status.ts";
import { tradingModes } from "../store/trading-state.ts";

const oneOf = <const Values extends readonly string[]>(values: Values, options: object = {}) =>
  Type.Unsafe<Values[number]>({ anyOf: values.map((value) => ({ type: "string", const: value })), ...options });

/** Visible ASCII. */
export const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]*$",
  description: "The same key as in the header Idempotency-Key.",
});
const OrderId = Type.String({
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
export const Instrument = Type.String({ minLength: 1, maxLength: 64, examples: ["BTC-USD"] });
export const RowId = Type.String({ pattern: "^[1-9][0-9]{0,17}$", examples: ["42"] });
const Status = oneOf(orderStatuses);

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

export const OrderBody = Type.Object({
  idempotency_key: IdempotencyKey,
  order_id: OrderId,
  user_id: Type.Optional(UserId),
  instrument: Instrument,
  side: oneOf(["BUY", "SELL"] as const),
  qty: Positive("The quantity."),
  price: Type.Union([Type.Null(), Positive("The limit price.")], {
    description: "The limit price; null for a market order.",
    examples: ["30000.5"],
  }),
  time_in_force: Type.Optional(oneOf(["IOC", "FOK", "GTC"] as const, { description: "Default: IOC." })),
  tags: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 32 }), { maxItems: 8 })),
  requested_at: RequestTime(),
  risk_constraints: Type.Optional(
    Type.Object({
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
const Digest = Type.String({ pattern: "^sha256:[0-9a-f]{64}$" });
const Result = Type.Record(Type.String(), Type.Unknown(), { description: "The broker's result." });

/** The current result. */
export const AcceptedView = Type.Object({
  order_id: OrderId,
  idempotency_key: IdempotencyKey,
  status: oneOf(["accepted", "succeeded", "failed"] as const),
  request_digest: Digest,
  client_order_id: Type.String({ description: "The order's ID at the broker." }),
  accepted_at: time,
  unresolved: Type.Optional(
    Type.Literal(true, { description: "The broker has neither confirmed nor denied the order." }),
  ),
  reason_code: Type.Optional(oneOf(reasonCodes)),
  reason: Type.Optional(Type.String()),
  broker_order_id: Type.Optional(Type.String()),
  result: Type.Optional(Result),
  ended_at: Type.Optional(time),
});

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

export const OrderView = Type.Object({
  id: RowId,
  caller: Type.String(),
  order_id: OrderId,
  user_id: orNull(UserId),
  idempotency_key: IdempotencyKey,
  client_order_id: Type.String(),
  request_digest: Digest,
  instrument: Instrument,
  side: oneOf(["BUY", "SELL"] as const),
  qty: Type.String(),
  price: orNull(Type.String()),
  time_in_force: oneOf(["IOC", "FOK", "GTC"] as const),
  tags: Type.Array(Type.String()),
  adapter: Type.String(),
  status: Status,
  attempts: Type.Integer(),
  reason_code: orNull(oneOf(reasonCodes)),
  reason: orNull(Type.String()),
  broker_order_id: orNull(Type.String()),
  result: orNull(Result),
  in_doubt_since: orNull(time),
  cancel: orNull(oneOf(["requested", "sending", "done", "refused", "aborted"] as const)),
  next_attempt_at: orNull(time),
  created_at: time,
  updated_at: time,
  ended_at: orNull(time),
});

export const StepView = Type.Object({
  place: Type.Integer(),
  from: orNull(Status),
  to: Status,
  attempt: Type.Integer(),
  code: orNull(Type.String()),
  detail: orNull(Type.String()),
  at: time,
  by: Type.String({ description: "The caller, operator or worker that made the transition." }),
});

export const ListQuery = {
  status: Type.Optional(Status),
  instrument: Type.Optional(Instrument),
  order_id: Type.Optional(OrderId),
  from: Type.Optional(RequestTime({ description: "Accepted at this time or later." })),
  to: Type.Optional(RequestTime({ description: "Accepted before this time." })),
};

export const TradingStateBody = Type.Object({
  mode: oneOf(tradingModes, { description: "halt: nothing is sent to the broker. cancel-only: only cancels are." }),
  reason: Type.String({ minLength: 1, maxLength: 500 }),
});

export const TradingStateView = Type.Object({
  scope: Type.String({ description: "* for all instruments, or an instrument." }),
  mode: oneOf(tradingModes),
  reason: Type.String(),
  set_by: Type.String(),
  set_at: time,
});
