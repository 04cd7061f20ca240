/** Entries with the same time are in the order in which things happen. */
export const kindOrder: readonly string[] = [
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
