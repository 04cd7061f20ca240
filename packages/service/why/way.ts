/** The way that things go: entries of one time are in this order. */
export const wayOf: readonly string[] = [
  "request",
  "commit",
  "entitlement",
  "reservation",
  "ticket",
  "match",
  "transaction",
  "order",
  "step",
  "fill",
  "event",
  "published",
  "delivery",
  "processed",
  "notification",
  "sent",
];
