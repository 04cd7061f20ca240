/** The problems of this service. Clients branch on the codes, which never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const idempotencyKeyMismatch = problem(
  422,
  "idempotency-key-mismatch",
  "The header and the body name different idempotency keys",
);
export const instrumentNotAllowed = problem(422, "instrument-not-allowed", "The instrument cannot be ordered here");
export const quantityNotAllowed = problem(
  422,
  "quantity-not-allowed",
  "The instrument cannot be ordered in this quantity",
);
export const priceNotAllowed = problem(422, "price-not-allowed", "The instrument cannot be ordered at this price");
export const priceRequired = problem(422, "price-required", "The instrument cannot be ordered without a price");
export const limitExceeded = problem(422, "limit-exceeded", "The order exceeds a limit");
export const exposureLimitExceeded = problem(
  422,
  "exposure-limit-exceeded",
  "The order exceeds the instrument's limit of position or open orders",
);
export const orderIdUsed = problem(409, "order-id-used", "Another order of the caller has this order_id");
export const orderRateExceeded = problem(429, "order-rate-exceeded", "Too many orders in this second");
export const tradingHalted = problem(503, "trading-halted", "Trading is halted");
export const reconciliationFailing = problem(
  503,
  "reconciliation-failing",
  "Reconciliation with the broker is failing",
);
export const orderNotFound = problem(404, "order-not-found", "There is no such order");
export const orderEnded = problem(409, "order-ended", "The order was aborted and cannot be cancelled");
export const orderNotUnresolved = problem(409, "order-not-unresolved", "The order is not unresolved");
export const orderWindowOpen = problem(409, "order-window-open", "The broker may still take the order");
export const slippageNotLimited = problem(422, "slippage-not-limited", "The broker does not limit slippage");
export const haltOfAnother = problem(403, "halt-of-another", "Another caller has stopped trading");
export const orderInHand = problem(409, "order-in-hand", "A worker is processing the order");
