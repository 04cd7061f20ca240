/** Rules between notifications and their dead letters. */
import type { AuditSpec } from "@todoke/kernel/audit";

export const notificationAudit: AuditSpec = {
  checked: { notifications: "notifications", "dead letters": "notification_dlq" },
  rules: {
    "every FAILED notification has its dead letter": `
    select n.notification_id::text as about, format('%s for %s', n.event_type, n.user_id) as detail
      from notifications n
     where n.status = 'FAILED'
       and not exists (select from notification_dlq d where d.notification_id = n.notification_id and d.redriven_at is null)`,
    "every open dead letter has its FAILED notification": `
    select d.notification_id::text as about, format('dead letter %s, notification %s', d.dlq_id, coalesce(n.status, 'missing')) as detail
      from notification_dlq d left join notifications n using (notification_id)
     where d.redriven_at is null and n.status is distinct from 'FAILED'`,
    "one notification for each event and user": `
    select min(notification_id::text) as about, format('%s for %s, %s times', event_id, user_id, count(*)) as detail
      from notifications group by event_id, user_id having count(*) > 1`,
  },
};
