-- the audit log of staff, newest first; most rows of the audit are creations
create index audit_logs_acts on audit_logs (audit_id) where action not in ('CREATE', 'UPDATE');
