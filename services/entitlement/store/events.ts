/** What every event of an entitlement says, in SQL over a changed row with its `event_id`. */
export const entitlementEventSql = {
  subject: "entitlement.events",
  eventId: "event_id",
  aggregateKey: "user_id || '/' || stock_keeping_unit",
  version: "version",
  occurredAt: "updated_at",
  fields: {
    user_id: "user_id",
    stock_keeping_unit: "stock_keeping_unit",
    source: "source",
    source_id: "source_id",
  },
};
