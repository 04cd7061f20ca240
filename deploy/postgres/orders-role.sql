-- Rights of todoke_orders, the role as which the service orders runs. Run this as the owner of the tables
-- after every `todoke migrate`; it can be run again at any time. What is not granted here is refused.
-- docs/guides/one-database-per-service.md explains the roles; flows/own-databases.test.ts runs the services with them.
begin;
revoke all on all tables in schema orders from todoke_orders;
grant usage on schema orders to todoke_orders;
grant select on all tables in schema orders to todoke_orders;

-- Orders and their ledger; removed by age after their end. The history and the cancel requests go with the order.
grant insert, update, delete on orders.outbox_orders, orders.idempo_ledger to todoke_orders;
grant insert, update
  on orders.cancel_requests, orders.trading_state, orders.reconciliations, orders.broker_turns
  to todoke_orders;

-- What is known of open orders and positions, which follows from the fills.
grant insert, update, delete on orders.followed_orders to todoke_orders;
grant insert, update on orders.positions to todoke_orders;

-- Its only row comes from a migration.
grant update on orders.order_rate to todoke_orders;

-- Outbox and idempotency keys: written by commands, removed by age.
grant insert, update, delete on orders.outbox_events, orders.idempotency_keys to todoke_orders;

-- Append-only.
grant insert
  on orders.order_fills, orders.order_status_history, orders.trading_state_audit, orders.order_resolutions, orders.redrives
  to todoke_orders;

-- Staff: acts are append-only; batches of dead letters and samples are removed by age.
grant insert on orders.staff_acts to todoke_orders;
grant insert, update, delete on orders.dead_letter_batches, orders.console_samples to todoke_orders;

-- Of a discarded row the copy is removed by age; who discarded it and why stays.
grant update (discarded, copy_removed_at) on orders.redrives to todoke_orders;

-- API keys are created and revoked, never changed: no key gets another holder, other scopes or a later end.
grant insert, update (last_used_at, revoked_at, revoked_by, revoked_reason) on orders.api_keys to todoke_orders;

-- The last audit of the tables.
grant insert, update on orders.audits to todoke_orders;
commit;
