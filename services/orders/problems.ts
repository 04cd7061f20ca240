/** All that this service refuses by itself. Clients branch on the codes: they never change; docs/errors.md lists them. */
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
  title: "The instrument is not ordered in this quantity",
});

export const priceNotAllowed = problem({
  code: "price-not-allowed",
  status: 422,
  title: "The instrument is not ordered at this price",
});

export const priceRequired = problem({
  code: "price-required",
  status: 422,
  title: "The instrument is not ordered without a price",
});

export const limitExceeded = problem({
  code: "limit-exceeded",
  status: 422,
  title: "The order is larger than allowed",
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

export const tradingHalted = problem({ code: "trading-halted", status: 503, title: "No orders are taken just now" });

export const reconciliationFailing = problem({
  code: "reconciliation-failing",
  status: 503,
  title: "No orders are taken until the broker's books have been compared",
});

export const orderNotFound = problem({ code: "order-not-found", status: 404, title: "There is no such order" });

export const orderEnded = problem({
  code: "order-ended",
  status: 409,
  title: "The order has been given up and cannot be cancelled",
});

export const orderNotUnresolved = problem({
  code: "order-not-unresolved",
  status: 409,
  title: "The order is not in doubt",
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
  title: "A sender has the order in hand at this moment",
});
