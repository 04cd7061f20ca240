import { genericPlan } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { createHarness } from "../testing.ts";
import { acceptOrdersSql } from "./accept-orders.ts";
import { waitingAgesSql } from "./backlog.ts";
import { recordFillsSql } from "./order-fills.ts";
import { transitionOrderSql } from "./transition-order.ts";

const filled = (n: number, from: number) => [
  `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter,
                              instrument, side, qty, changed_by, expires_at)
   select 'c' || i % 10, 'k' || i, 'o' || i, 'tdk-' || i, '{}', 'd', 'paper', 'X', 'BUY', 1, 'c', now()
     from generate_series(${from}, ${from + n}) i`,
  `insert into idempo_ledger (caller, idempotency_key, order_row_id, request_digest, answer, expires_at)
   select caller, idempotency_key, id, 'd', '', now() from outbox_orders on conflict do nothing`,
];

test("statements probe indexes on empty tables, on full ones and with stale statistics", async () => {
  await using t = await createHarness();
  // Filling a table may take longer than a service's statement.
  const filling = t.open({ statementTimeoutMs: 120_000, lockTimeoutMs: 120_000 });
  for (const state of ["", "analyze", ...filled(10_000, 1), "analyze", ...filled(10_000, 20_000)]) {
    await filling.query(state);
    for (const sql of [acceptOrdersSql, transitionOrderSql, recordFillsSql, waitingAgesSql]) {
      const plan = await genericPlan(t.db, sql);
      expect(plan, `after "${state.trim().slice(0, 40)}"\n${plan}`).not.toMatch(
        /Seq Scan on (outbox_orders|idempo_ledger)/,
      );
    }
  }
});
