/** The states of an order. docs/states.md has the diagram. */

/** `succeeded` and `aborted` are final. `unknown`: sent, neither confirmed nor denied by the broker. */
export const orderStatuses = ["pending", "sending", "succeeded", "failed", "aborted", "unknown"] as const;
export type OrderStatus = (typeof orderStatuses)[number];

/** Why an order failed, was aborted or is unresolved. CANCELLED is by the caller, the others by the broker or us. */
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

/** The state of a taken order at the broker: waiting for fills, or ended. */
export const executions = ["open", "filled", "cancelled", "expired"] as const;
export type Execution = (typeof executions)[number];
