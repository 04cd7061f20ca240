/** Every problem that the service answers with. Clients branch on the codes, so these never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const insufficientPoints = problem({
  code: "insufficient-points",
  status: 409,
  title: "The user does not have that many points",
});

export const balanceOverflow = problem({
  code: "balance-overflow",
  status: 409,
  title: "The user would have more than 2^63 - 1 points",
});

export const tooManyLots = problem({
  code: "too-many-lots",
  status: 422,
  title: "The points are spread over too many lots",
});

export const lotEndInThePast = problem({
  code: "lot-end-in-the-past",
  status: 422,
  title: "The points would already be expired",
});

export const holdNotFound = problem({ code: "hold-not-found", status: 404, title: "The hold does not exist" });

export const holdEnded = problem({ code: "hold-ended", status: 409, title: "The hold has ended" });

export const captureTooLarge = problem({
  code: "capture-too-large",
  status: 422,
  title: "The capture is larger than the hold",
});

export const transactionNotFound = problem({
  code: "transaction-not-found",
  status: 404,
  title: "The transaction does not exist",
});

export const notRefundable = problem({
  code: "not-refundable",
  status: 422,
  title: "The transaction cannot be refunded",
});

export const refundTooLarge = problem({
  code: "refund-too-large",
  status: 409,
  title: "The refund is larger than the rest of the transaction",
});

export const reservationNotFound = problem({
  code: "reservation-not-found",
  status: 404,
  title: "The reservation does not exist",
});

export const reservationNotPending = problem({
  code: "reservation-not-pending",
  status: 409,
  title: "The reservation is no longer pending",
});

export const scheduleNotFound = problem({
  code: "schedule-not-found",
  status: 404,
  title: "The schedule does not exist",
});

export const scheduleNameTaken = problem({
  code: "schedule-name-taken",
  status: 409,
  title: "Another schedule has this name",
});

export const scheduleEnded = problem({ code: "schedule-ended", status: 409, title: "The schedule has ended" });

export const scheduleUnreadable = problem({
  code: "schedule-unreadable",
  status: 422,
  title: "The cron expression or time zone is invalid",
});

/** The detail of an `idempotency-conflict`. */
export const otherBodyDetail =
  "This Idempotency-Key was first sent with another body. Use a new key for a new command.";
