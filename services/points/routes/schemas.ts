/** What the routes take and answer. The schemas are the contract (seed 003). */
import { Type } from "typebox";
import { pointsMax } from "../ledger/account.ts";

export const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["testUser1"] });
export const Uuid = Type.String({
  format: "uuid",
  // Not with the prefix urn:uuid:, which the format also takes and the database does not.
  pattern: "^[0-9A-Fa-f-]{36}$",
  examples: ["0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f"],
});
export const OneUser = Type.Object({ user_id: UserId });

/** Its digits, whichever way it came: `takesAmounts` has made them so when a route sees them. */
export const PointAmount = Type.Unsafe<string>({
  type: ["integer", "string"],
  format: "int64",
  minimum: 1,
  pattern: "^[1-9]\\d{0,18}$",
  description:
    `Points, 1 to ${pointsMax} (2^63 - 1), as a JSON integer or as a string of its digits: 100 and "100" are the same. ` +
    "Every digit counts: a client whose numbers are doubles (JavaScript) sends more than 2^53 as a string.",
  examples: [100],
});

/** Answers have every digit, whatever the caller's JSON parser makes of it. */
export const points = (description: string) =>
  Type.Unsafe<bigint>({ type: "integer", format: "int64", description, examples: [100] });

const timeForm = {
  format: "date-time",
  // Not the leap seconds that the format also has and no clock here knows.
  pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$",
} as const;

/** A time as callers write it; `timeOf` reads it. */
export const GivenTime = (description: string) =>
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
  description: "Why, in words.",
  examples: ["campaign"],
});
const Source = Type.String({ minLength: 1, maxLength: 64, description: "What it comes from.", examples: ["order"] });
const SourceId = Type.String({ minLength: 1, maxLength: 128, description: "Which of those.", examples: ["o_456"] });

/** What a caller may say of every change, to find it again in the statement. */
export const About = {
  reason: Type.Optional(Reason),
  source: Type.Optional(Source),
  source_id: Type.Optional(SourceId),
};

const LotEnd = Type.Optional(GivenTime("When the points run out, to the millisecond; never, if not given."));

export const ReserveBody = Type.Object({
  user_id: UserId,
  point_amount: PointAmount,
  execute_at: GivenTime(
    "When they are granted, by the database's clock and never before; a time that has passed: at once.",
  ),
  expires_at: LotEnd,
  reason: Type.Optional(Reason),
});

export const AddBody = Type.Object({ user_id: UserId, point_amount: PointAmount, expires_at: LotEnd, ...About });
export const SpendBody = Type.Object({ user_id: UserId, point_amount: PointAmount, ...About });

export const Kind = Type.Union(
  [
    Type.Literal("ADD"),
    Type.Literal("GRANT", { description: "A reservation that came due." }),
    Type.Literal("SUB"),
    Type.Literal("EXPIRE", { description: "What was left of an addition or a grant ran out." }),
    Type.Literal("HOLD"),
    Type.Literal("RELEASE"),
    Type.Literal("CAPTURE"),
    Type.Literal("REFUND"),
  ],
  { description: "What happened." },
);

const transaction = {
  transaction_id: Uuid,
  user_id: UserId,
  kind: Kind,
  point_amount: points("The change of the balance, with its sign; 0 for a capture, whose points were held before."),
  moved: points("How many points went from one account to another."),
  balance: points("What can be spent after it."),
  held: points("What holds have set aside after it."),
  version: points("The number of the user's transactions so far."),
  ...About,
  refers_to: Type.Optional(
    Type.String({
      format: "uuid",
      description: "The lot that ran out, the hold, or the transaction that is refunded.",
    }),
  ),
  created_at: time(),
};

export const TransactionView = Type.Object(transaction);

export const StatementView = Type.Object({
  ...transaction,
  from_account: Type.String({ examples: ["issuer", "user:testUser1"] }),
  to_account: Type.String({ examples: ["user:testUser1", "spent"] }),
});

const HoldStatus = Type.Union([
  Type.Literal("HELD"),
  Type.Literal("CAPTURED"),
  Type.Literal("RELEASED"),
  Type.Literal("EXPIRED", { description: "Nobody ended it in time: all was given back." }),
]);

const hold = {
  hold_id: Uuid,
  amount: points("What was set aside."),
  captured: points("What of it was spent."),
  released: points("What of it was given back."),
  status: HoldStatus,
  ends_at: time("When it ends by itself."),
};

export const HoldChangeView = Type.Object({ ...transaction, ...hold });
export const HoldView = Type.Object({ ...hold, user_id: UserId, created_at: time() });

export const ReservationStatus = Type.Union([
  Type.Literal("PENDING"),
  Type.Literal("PROCESSING", { description: "Its time has come, and the worker is told." }),
  Type.Literal("DONE", { description: "The points are granted." }),
  Type.Literal("FAILED", { description: "`last_error` says why." }),
  Type.Literal("CANCELLED"),
]);

export const BookedView = Type.Object({
  id: Uuid,
  user_id: UserId,
  point_amount: points("What is granted when its time comes."),
  execute_at: time(),
  status: Type.Literal("PENDING", { description: "As it was when it was booked, at every replay too." }),
  reason: Type.Optional(Reason),
  expires_at: Type.Optional(time("When the granted points run out.")),
  created_at: time(),
});

export const ReservationView = Type.Object({
  ...BookedView.properties,
  status: ReservationStatus,
  last_error: Type.Optional(Type.String()),
  transaction_id: Type.Optional(Type.String({ format: "uuid", description: "What granted it." })),
  schedule_id: Type.Optional(Type.String({ format: "uuid", description: "The recurring grant that booked it, and" })),
  occurrence_at: Type.Optional(time("which of its times this is.")),
  attempt_count: Type.Integer({ description: "How often the worker was told." }),
  updated_at: time(),
});

const balance = {
  user_id: UserId,
  balance: points("What can be spent. What has run out is not in it."),
  held: points("What holds have set aside."),
  version: points("The number of the user's transactions up to then."),
  as_of: time("When this was so."),
};
const pending = points("Reserved, and not granted yet; it may be more than 2^63 - 1.");

export const ConfirmedView = Type.Object({ ...balance, pending });
/** As of a time that has passed nobody knows what was pending then. */
export const BalanceView = Type.Object({ ...balance, pending: Type.Optional(pending) });
