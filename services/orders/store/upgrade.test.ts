import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { migrate } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { testDatabase } from "@todoke/kernel/testing";
import { expect, onTestFinished, test } from "vitest";

const dir = new URL("../migrations/", import.meta.url);

/** The migrations up to this number, in a folder of their own. */
function migrationsUpTo(last: string): URL {
  const folder = mkdtempSync(join(tmpdir(), "orders-migrations-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of readdirSync(dir).filter((name) => name.slice(0, 4) <= last))
    cpSync(join(fileURLToPath(dir), file), join(folder, file));
  return pathToFileURL(`${folder}/`);
}

test("orders from before fills were recorded: open ones are followed and are exposure, ended ones are left as they are", async () => {
  await using t = await testDatabase();
  const migrateBy = (from: URL) =>
    migrate(t.db, { schema: "orders", sets: [kernelMigrations, { name: "orders", dir: from }] });
  await migrateBy(migrationsUpTo("0004"));
  const db = t.open({ schema: "orders" });
  await db.query(
    `insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest, adapter,
                                instrument, side, qty, price, changed_by, expires_at)
     select 'c', k, k, 'tdk-' || k, '{}', 'd', 'paper', 'X', 'BUY', 2, 10, 'c', now()
       from unnest(array['waiting', 'open', 'filled']) k`,
  );
  await db.query(`update outbox_orders set status = 'sending', lease_until = now() where order_id <> 'waiting'`);
  await db.query(
    `update outbox_orders set status = 'succeeded', lease_until = null, done_at = now(),
            broker_result = jsonb_build_object('status', order_id) where order_id <> 'waiting'`,
  );
  await migrateBy(dir);
  const { rows } = await db.query(
    `select order_id, execution, f.status as followed from outbox_orders o left join followed_orders f on f.order_row_id = o.id
      order by o.id`,
  );
  expect(rows).toEqual([
    { order_id: "waiting", execution: null, followed: null },
    { order_id: "open", execution: "open", followed: "open" },
    { order_id: "filled", execution: null, followed: null },
  ]);
  const { rows: positions } = await db.query(
    `select position::text, open_buy_qty::text, open_sell_qty::text, open_notional::text from positions`,
  );
  expect(positions).toEqual([{ position: "0", open_buy_qty: "4", open_sell_qty: "0", open_notional: "40" }]);
});
