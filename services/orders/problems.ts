/** The problems of this service. Clients branch on the codes, which never change. docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const idempotencyKeyMismatch = problem({
  code: "idempotency-key-mismatch",
  status: 422,
  title: "The header and the body name different idempotency keys",
});

export const instrumentNotAllowed = problem({
  code: "instrument-not-allowed",
  status: 422,
  title: "The instrument cannot be ordered here",
});

export const quantityNotAllowed = problem({
  code: "quantity-not-allowed",
  status: 422,
  title: "The instrument cannot be ordered in this quantity",
});

export const priceNotAllowed = problem({
  code: "price-not-allowed",
  status: 422,
  title: "The instrument cannot be ordered at this price",
});

export const priceRequired = problem({
  code: "price-required",
  status: 422,
  title: "The instrument cannot be ordered without a price",
});

export const limitExceeded = problem({
  code: "limit-exceeded",
  status: 422,
  title: "The order exceeds a limit",
});

export const orderIdUsed = problem({
  code: "order-id-used",
  status: 409,
  title: "Another order of the caller has this order_id",
});

export const orderRateExceeded = problem({
  code: "order-rate-exceeded",
  status: 429,
  title: "Too many orders in this second",
});

export const tradingHalted = problem({ code: "trading-halted", status: 503, title: "Trading is halted" });

export const reconciliationFailing = problem({
  code: "reconciliation-failing",
  status: 503,
  title: "Reconciliation with the broker is failing",
});

export const orderNotFound = problem({ code: "order-not-found", status: 404, title: "There is no such order" });

export const orderEnded = problem({
  code: "order-ended",
  status: 409,
  title: "The order was aborted and cannot be cancelled",
});

export const orderNotUnresolved = problem({
  code: "order-not-unresolved",
  status: 409,
  title: "The order is not unresolved",
});

export const orderWindowOpen = problem({
  code: "order-window-open",
  status: 409,
  title: "The broker may still take the order",
});

export const slippageNotLimited = problem({
  code: "slippage-not-limited",
  status: 422,
  title: "The broker does not limit slippage",
});

export const haltOfAnother = problem({
  code: "halt-of-another",
  status: 403,
  title: "Another caller has stopped trading",
});

export const orderInHand = problem({
  code: "order-in-hand",
  status: 409,
  title: "A worker is processing the order",
});
