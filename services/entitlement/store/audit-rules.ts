/** Rules between entitlements, their audit and their events. */
import { type AuditSpec, eventExists } from "@todoke/kernel/audit";

/** Months of the audit are dropped by age: entitlements that changed before the oldest row are not compared. */
const audited = "e.updated_at >= (select min(created_at) from entitlement_audit)";

export const entitlementAudit: AuditSpec = {
  checked: { entitlements: "entitlements", changes: "entitlement_audit" },
  rules: {
    "every entitlement is as its last change left it": `
    select e.user_id || '/' || e.stock_keeping_unit as about,
           format('%s in version %s by %s %s, last change: %s by %s %s', e.status, e.version, e.source, e.source_id,
                  coalesce(a.action, 'none'), a.source, a.source_id) as detail
      from entitlements e
      left join entitlement_audit a on a.user_id = e.user_id and a.stock_keeping_unit = e.stock_keeping_unit and a.version = e.version
     where (${audited} or not exists (select from entitlement_audit))
       and (a.action is null or a.source <> e.source or a.source_id <> e.source_id
            or e.status <> case a.action when 'GRANT' then 'ACTIVE' when 'REVOKE' then 'REVOKED' else 'EXPIRED' end)`,
    "changes of an entitlement are numbered without gaps up to its version": `
    select a.user_id || '/' || a.stock_keeping_unit as about,
           format('%s changes from %s to %s, version %s', a.changes, a.first, a.last, e.version) as detail
      from (select user_id, stock_keeping_unit, count(*) as changes, min(version) as first, max(version) as last
              from entitlement_audit group by user_id, stock_keeping_unit) a
      left join entitlements e using (user_id, stock_keeping_unit)
     where a.changes <> a.last - a.first + 1 or a.last is distinct from e.version
        or (a.first > 1 and e.created_at >= (select min(created_at) from entitlement_audit))`,
    "every change has its event": `
    select a.event_id::text as about, format('%s of %s/%s, version %s', a.action, a.user_id, a.stock_keeping_unit, a.version) as detail
      from entitlement_audit a
     where a.created_at > (select since from kept) and not ${eventExists("o.event_id = a.event_id")}`,
  },
};
