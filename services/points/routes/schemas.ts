/** Schemas that several routes share. */
import { named } from "@todoke/contracts/api";
import { withDescription } from "@todoke/http";
import { Type } from "typebox";
import { pointsMax } from "../ledger/account.ts";

export const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["testUser1"] });
export const Uuid = Type.String({
  format: "uuid",
  // The format also allows the prefix urn:uuid:, which PostgreSQL does not accept.
  pattern: "^[0-9A-Fa-f-]{36}$",
  examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
});
export const UserParams = Type.Object({ user_id: UserId });

/** Handlers see the digits: `withAmounts` converts a JSON integer. */
export const PointAmount = Type.Unsafe<string>({
  title: "PointAmount",
  type: ["integer", "string"],
  format: "int64",
  minimum: 1,
  pattern: "^[1-9]\\d{0,18}$",
  description:
    `Points, 1 to ${pointsMax} (2^63 - 1), as a JSON integer or as a string of digits: 100 and "100" are the same. ` +
    "A client whose numbers are doubles (JavaScript) must send amounts above 2^53 as a string.",
  examples: [100],
});

const Points = Type.Unsafe<bigint>({
  title: "Points",
  type: "integer",
  format: "int64",
  description:
    `Points, up to ${pointsMax} (2^63 - 1), as a JSON integer with every digit. A client whose numbers are doubles ` +
    "(JavaScript) must parse amounts above 2^53 exactly.",
  examples: [100],
});
export const points = (description: string) => withDescription(Points, description);

/** A sum of amounts has no bound. */
export const pointSum = (description: string) =>
  Type.Unsafe<bigint>({
    type: "integer",
    format: "int64",
    description: `${description} It can exceed 2^63 - 1.`,
    examples: [100],
  });

const version = (description: string) =>
  Type.Unsafe<bigint>({ type: "integer", format: "int64", description, examples: [3] });

const timeForm = {
  format: "date-time",
  // The format also allows leap seconds, which PostgreSQL does not have.
  pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
} as const;

/** A time in a request; `parseTime` reads it. */
export const RequestTime = (description: string) =>
  Type.String({
    ...timeForm,
    description: `${description} RFC 3339 with any offset, from the year 0001 to the year 9999 in UTC.`,
    examples: ["2026-01-15T10:00:00+09:00"],
  });

export const time = (description?: string) =>
  Type.String({ format: "date-time", ...(description !== undefined && { description }) });

export const Reason = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "A reason, shown in the statement.",
  examples: ["campaign"],
});
const Source = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "The kind of object that caused the change.",
  examples: ["order"],
});
const SourceId = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "The ID of that object.",
  examples: ["o_456"],
});

/** Optional fields of every change, to find it in the statement. */
export const Origin = {
  reason: Type.Optional(Reason),
  source: Type.Optional(Source),
  source_id: Type.Optional(SourceId),
};

const LotEnd = Type.Optional(RequestTime("When the points expire, to the millisecond. Default: never."));

export const ReserveBody = named("ReservePointsRequest", {
  user_id: UserId,
  point_amount: PointAmount,
  execute_at: RequestTime(
    "When the points are granted, by the database's clock and never earlier. A time in the past is due at once.",
  ),
  expires_at: LotEnd,
  reason: Type.Optional(Reason),
});

export const AddBody = named("AddPointsRequest", {
  user_id: UserId,
  point_amount: PointAmount,
  expires_at: LotEnd,
  ...Origin,
});
export const SpendBody = named("SpendPointsRequest", { user_id: UserId, point_amount: PointAmount, ...Origin });

export const Kind = Type.Union(
  [
    Type.Literal("ADD"),
    Type.Literal("GRANT", { description: "A reservation was executed." }),
    Type.Literal("SUB"),
    Type.Literal("EXPIRE", { description: "The rest of a lot expired." }),
    Type.Literal("HOLD"),
    Type.Literal("RELEASE"),
    Type.Literal("CAPTURE"),
    Type.Literal("REFUND"),
  ],
  { title: "TransactionKind", description: "The kind of transaction." },
);

const transaction = {
  transaction_id: Uuid,
  user_id: UserId,
  kind: Kind,
  point_amount: points(
    "The change of the balance, with its sign. 0 for a capture, because held points are not in the balance.",
  ),
  moved: points("The number of points moved between accounts."),
  balance: points("Points that can be spent after the transaction."),
  held: points("Points blocked by holds after the transaction."),
  version: version("The number of the user's transactions so far."),
  ...Origin,
  refers_to: Type.Optional(
    Type.String({
      format: "uuid",
      description: "The expired lot, the hold, or the refunded transaction.",
    }),
  ),
  created_at: time(),
};

export const TransactionView = named("Transaction", transaction);

export const StatementView = named("StatementEntry", {
  ...transaction,
  from_account: Type.String({
    description: "The account that the points left.",
    examples: ["issuer", "user:testUser1"],
  }),
  to_account: Type.String({
    description: "The account that the points entered.",
    examples: ["user:testUser1", "spent"],
  }),
});

const HoldStatus = Type.Union(
  [
    Type.Literal("HELD"),
    Type.Literal("CAPTURED"),
    Type.Literal("RELEASED"),
    Type.Literal("EXPIRED", { description: "The hold reached `ends_at`, and all points were returned." }),
  ],
  { title: "HoldStatus" },
);

const hold = {
  hold_id: Uuid,
  amount: points("Points that were held."),
  captured: points("Points that were spent."),
  released: points("Points that were returned to the user."),
  status: HoldStatus,
  ends_at: time("When the hold expires."),
};

export const HoldChangeView = named("HoldTransaction", { ...transaction, ...hold });
export const HoldView = named("Hold", { ...hold, user_id: UserId, created_at: time() });

export const ReservationStatus = Type.Union(
  [
    Type.Literal("PENDING"),
    Type.Literal("PROCESSING", { description: "The reservation is due and was sent to the worker." }),
    Type.Literal("DONE", { description: "The points are granted." }),
    Type.Literal("FAILED", { description: "See `last_error`. An operator can redrive it." }),
    Type.Literal("CANCELLED"),
  ],
  { title: "ReservationStatus" },
);

export const NewReservationView = named("NewReservation", {
  id: Uuid,
  user_id: UserId,
  point_amount: points("Points to be granted."),
  execute_at: time("When the points are granted."),
  status: Type.Literal("PENDING", { description: "The status at creation, also in a replay." }),
  reason: Type.Optional(Reason),
  expires_at: Type.Optional(time("When the granted points expire.")),
  created_at: time(),
});

export const ReservationView = named("Reservation", {
  ...NewReservationView.properties,
  status: ReservationStatus,
  last_error: Type.Optional(Type.String({ description: "Why the last attempt failed." })),
  transaction_id: Type.Optional(
    Type.String({ format: "uuid", description: "The transaction that granted the points." }),
  ),
  schedule_id: Type.Optional(Type.String({ format: "uuid", description: "The schedule that created it." })),
  occurrence_at: Type.Optional(time("The occurrence of that schedule.")),
  attempt_count: Type.Integer({ description: "How often it was sent to the worker." }),
  updated_at: time(),
});

const balance = {
  user_id: UserId,
  balance: points("Points that can be spent. Expired points do not count."),
  held: points("Points blocked by holds."),
  version: version("The number of the user's transactions at that time."),
  as_of: time("The time of this balance."),
};
const pending = pointSum("Points reserved and not granted yet.");

export const ConfirmedView = named("ConfirmedBalance", { ...balance, pending });
/** Without `pending` at a past time, because its history is not stored. */
export const BalanceView = named("Balance", { ...balance, pending: Type.Optional(pending) });
