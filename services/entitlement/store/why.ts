/** The look-ups of an id in the tables of entitlements. */
import { entriesSql, type Lookup } from "@todoke/kernel/why";

const entitlementsMax = 20;

export const entitlementLookups: readonly Lookup[] = [
  {
    by: "user",
    shape: "text",
    sql: entriesSql({
      kind: "'entitlement'",
      id: "e.user_id || '/' || e.stock_keeping_unit || '@' || e.version",
      at: "e.updated_at",
      state: "e.status",
      process: "a.caller",
      detail: "e.stock_keeping_unit || ', version ' || e.version || ', by ' || e.source || ' ' || e.source_id",
      links: [
        ["user", "e.user_id"],
        ["event", "a.event_id"],
      ],
      from: `(select * from entitlements where user_id = $1 order by updated_at desc limit ${entitlementsMax}) e
        left join lateral (
          select h.caller, h.event_id from entitlement_audit h
           where h.user_id = e.user_id and h.stock_keeping_unit = e.stock_keeping_unit and h.version = e.version
           limit 1) a on true`,
    }),
  },
  {
    by: "entitlement",
    shape: "entitlement",
    sql: entriesSql({
      kind: "'commit'",
      id: "h.user_id || '/' || h.stock_keeping_unit || '@' || h.version",
      at: "h.created_at",
      state: "h.action",
      process: "h.caller",
      detail: "h.stock_keeping_unit || ', version ' || h.version || ', by ' || h.source || ' ' || h.source_id",
      links: [
        ["user", "h.user_id"],
        ["event", "h.event_id"],
      ],
      from: `entitlement_audit h
        where h.user_id = split_part($1, '/', 1)
          and h.stock_keeping_unit = regexp_replace(substr($1, strpos($1, '/') + 1), '@[0-9]+$', '')
          and h.version = substring($1 from '@([0-9]+)$')::bigint
        limit 1`,
    }),
  },
];
