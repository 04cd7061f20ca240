/** Every problem that the service answers with. Clients branch on the codes, so these never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const insufficientPoints = problem(409, "insufficient-points", "The user does not have that many points");
export const balanceOverflow = problem(409, "balance-overflow", "The user would have more than 2^63 - 1 points");
export const tooManyLots = problem(422, "too-many-lots", "The points are spread over too many lots");
export const lotEndInThePast = problem(422, "lot-end-in-the-past", "The points would already be expired");
export const holdNotFound = problem(404, "hold-not-found", "The hold does not exist");
export const holdEnded = problem(409, "hold-ended", "The hold has ended");
export const captureTooLarge = problem(422, "capture-too-large", "The capture is larger than the hold");
export const transactionNotFound = problem(404, "transaction-not-found", "The transaction does not exist");
export const notRefundable = problem(422, "not-refundable", "The transaction cannot be refunded");
export const refundTooLarge = problem(409, "refund-too-large", "The refund is larger than the rest of the transaction");
export const reservationNotFound = problem(404, "reservation-not-found", "The reservation does not exist");
export const reservationNotPending = problem(409, "reservation-not-pending", "The reservation is no longer pending");
export const scheduleNotFound = problem(404, "schedule-not-found", "The schedule does not exist");
export const scheduleNameTaken = problem(409, "schedule-name-taken", "Another schedule has this name");
export const scheduleEnded = problem(409, "schedule-ended", "The schedule has ended");
export const scheduleUnreadable = problem(422, "schedule-unreadable", "The cron expression or time zone is invalid");
