/** The payloads of EntitlementGranted, EntitlementRevoked and EntitlementExpired, as SQL over a changed row with its `event_id`. */
const common = {
  subject: "entitlement.events",
  eventId: "event_id",
  aggregateKey: "user_id || '/' || stock_keeping_unit",
  version: "version",
  occurredAt: "updated_at",
};

const fields = {
  user_id: "user_id",
  stock_keeping_unit: "stock_keeping_unit",
  source: "source",
  source_id: "source_id",
};

/** The row also has the event's type and its trace headers. */
export const entitlementChanged = { ...common, fields, eventType: "event_type", headers: "headers" };

export const entitlementExpired = {
  ...common,
  fields: { ...fields, expires_at: "expires_at" },
  eventType: "'EntitlementExpired'",
};
