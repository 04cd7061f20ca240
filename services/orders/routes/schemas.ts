/** What the routes take and answer. The schemas are the contract (seed 004). */
import { Type } from "typebox";
import { scaleMax, wholeMax } from "../decimal.ts";
import { orderStatuses, reasonCodes } from "../order.ts";
import { tradingModes } from "../store/trading-state.ts";

const oneOf = <const Words extends readonly string[]>(words: Words, options: object = {}) =>
  Type.Unsafe<Words[number]>({ anyOf: words.map((word) => ({ type: "string", const: word })), ...options });

/** Visible ASCII. */
export const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]*$",
  description: "The same as in the header Idempotency-Key.",
});
const OrderId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[\\x21-\\x7e]*$",
  description: "Your own name for the order; visible ASCII.",
  examples: ["o-1001"],
});
const UserId = Type.String({
  minLength: 1,
  maxLength: 128,
  description:
    "The player for whom the order is placed. The player is notified of the order; without user_id, nobody is.",
  examples: ["u_123"],
});
export const Instrument = Type.String({ minLength: 1, maxLength: 64, examples: ["BTC-USD"] });
export const RowId = Type.String({ pattern: "^[1-9][0-9]{0,17}$", examples: ["42"] });
const Status = oneOf(orderStatuses);

/** More than 0, exact: a number that a double would change is refused, and can be sent as text. */
const Positive = (description: string) =>
  Type.Union(
    [
      Type.Number({ exclusiveMinimum: 0 }),
      Type.String({
        maxLength: 64,
        pattern: `^(?!0(?:\\.0+)?$)(?:0|[1-9][0-9]{0,${wholeMax - 1}})(?:\\.[0-9]{1,${scaleMax}})?$`,
      }),
    ],
    { description: `${description} A JSON number, or its digits as a string.`, examples: [0.5, "0.5"] },
  );

const Time = Type.String({
  format: "date-time",
  // Not the leap seconds and the distant years that the format also has and nobody can keep.
  pattern: "^2\\d{3}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
  examples: ["2026-01-31T09:30:00Z"],
});

export const OrderBody = Type.Object({
  idempotency_key: IdempotencyKey,
  order_id: OrderId,
  user_id: Type.Optional(UserId),
  instrument: Instrument,
  side: oneOf(["BUY", "SELL"] as const),
  qty: Positive("How much."),
  price: Type.Union([Type.Null(), Positive("At this price, or better.")], {
    description: "null: at the market's.",
    examples: ["30000.5"],
  }),
  time_in_force: Type.Optional(oneOf(["IOC", "FOK", "GTC"] as const, { description: "IOC, if not given." })),
  tags: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 32 }), { maxItems: 8 })),
  requested_at: Time,
  risk_constraints: Type.Optional(
    Type.Object({
      max_notional: Type.Optional(Positive("What qty times price may be at the most.")),
      max_slippage_bps: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 10_000,
          description:
            "Of an order at the market's price: by how many basis points the price may be worse than the middle of the market. " +
            "The broker rejects what it cannot fill within it. An order with a price is filled at that price or better.",
        }),
      ),
    }),
  ),
  trace_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "Not part of the request's digest." }),
  ),
});

const time = Type.String({ format: "date-time" });
const Digest = Type.String({ pattern: "^sha256:[0-9a-f]{64}$" });
const Result = Type.Record(Type.String(), Type.Unknown(), { description: "What the broker made of it." });

/** The result so far. */
export const AcceptedView = Type.Object({
  order_id: OrderId,
  idempotency_key: IdempotencyKey,
  status: oneOf(["accepted", "succeeded", "failed"] as const),
  request_digest: Digest,
  client_order_id: Type.String({ description: "What the broker knows it by." }),
  accepted_at: time,
  unresolved: Type.Optional(Type.Literal(true, { description: "Whether the broker has it is not known." })),
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
  by: Type.String({ description: "The caller, a person, or the worker that took the step." }),
});

export const ListQuery = {
  status: Type.Optional(Status),
  instrument: Type.Optional(Instrument),
  order_id: Type.Optional(OrderId),
  from: Type.Optional(Type.String({ ...Time, description: "Accepted at this time or later." })),
  to: Type.Optional(Type.String({ ...Time, description: "Accepted before this time." })),
};

export const TradingStateBody = Type.Object({
  mode: oneOf(tradingModes, { description: "halt: nothing goes to the broker; cancel-only: cancels do." }),
  reason: Type.String({ minLength: 1, maxLength: 500 }),
});

export const TradingStateView = Type.Object({
  scope: Type.String({ description: "*, or an instrument." }),
  mode: oneOf(tradingModes),
  reason: Type.String(),
  set_by: Type.String(),
  set_at: time,
});
