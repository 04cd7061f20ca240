/** What an order is, and the states that it goes through. docs/states.md has the diagram. */

/** `succeeded` and `aborted` are ends. `unknown`: whether the broker has it is not known, and nobody guesses. */
export const orderStatuses = ["pending", "sending", "succeeded", "failed", "aborted", "unknown"] as const;
export type OrderStatus = (typeof orderStatuses)[number];

/** Why an order is not where it should be. The first six are the broker's doing or ours; the last is the caller's. */
export const reasonCodes = [
  "BROKER_REJECTED",
  "BROKER_TIMEOUT",
  "BROKER_DOWN",
  "BROKER_RATE_LIMITED",
  "BROKER_ALREADY_PROCESSED",
  "INTERNAL_ERROR",
  "CANCELLED",
] as const;
export type ReasonCode = (typeof reasonCodes)[number];
