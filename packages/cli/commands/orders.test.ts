import { userInfo } from "node:os";
import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { servicesDatabase } from "@todoke/service/testing";
import { expect, test } from "vitest";
import { openShell, runTodoke } from "../testing/command.ts";

/** A database with the schema of orders, without a running service. */
async function setup() {
  const t = await servicesDatabase(["orders"]);
  const shell = openShell("todoke");
  return {
    db: t.open({ schema: "orders" }),
    url: t.url,
    shell,
    // The test shell splits at spaces, so an argument has _ instead of spaces.
    orders: (args: string) => runTodoke(`orders ${args}`, { DATABASE_URL: t.url }),
    async json(args: string) {
      const { code, out, err } = await runTodoke(`orders ${args} --json`, { DATABASE_URL: t.url });
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    },
    async [Symbol.asyncDispose]() {
      await shell[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

interface Doubt {
  readonly key: string;
  readonly caller?: string;
  readonly minutes?: number;
}

/** An order that waits to be sent. */
async function accept(db: Db, { key, caller = "desk" }: Omit<Doubt, "minutes">): Promise<void> {
  await db.query(
    `with accepted as (
       insert into outbox_orders (caller, idempotency_key, order_id, client_order_id, order_request_json, request_digest,
                                  adapter, instrument, side, qty, price, changed_by, expires_at)
       values ($1, $2, 'o-' || $2, 'tdk-' || $1 || $2, '{"time_in_force":"IOC"}', 'sha256:0', 'http', 'BTC-USD', 'BUY', 0.5,
               60000, $1, now() + interval '1 day')
       returning id)
     insert into idempo_ledger (caller, idempotency_key, order_row_id, request_digest, answer, expires_at)
     select $1, $2, id, 'sha256:0', '{}', now() + interval '1 day' from accepted`,
    [caller, key],
  );
}

/** An unresolved order: it was sent, and the reply was lost. */
async function doubt(db: Db, { key, caller = "desk", minutes = 1 }: Doubt): Promise<void> {
  await accept(db, { key, caller });
  const its = `where caller = $1 and idempotency_key = $2`;
  await db.query(
    `update outbox_orders set status = 'sending', attempts = 1, lease_epoch = 1, locked_by = 'sender', lease_until = now() ${its}`,
    [caller, key],
  );
  await db.query(
    `update outbox_orders set status = 'unknown', in_doubt_since = now() - $3 * interval '1 minute', lease_until = null,
            locked_by = null, last_error_code = 'BROKER_TIMEOUT', last_error_msg = E'no answer\\x1b[31m' ${its}`,
    [caller, key, minutes],
  );
}

const statusOf = async (db: Db, key: string) =>
  (await db.query(`select status from outbox_orders where idempotency_key = $1`, [key])).rows[0].status;

const resolutions = async (db: Db) =>
  (await db.query(`select "as", reason, by from order_resolutions order by resolution_id`)).rows;

test("unresolved orders are listed oldest first, in pages; all orders can be filtered", async () => {
  await using t = await setup();
  expect((await t.orders("list --unresolved")).out).toBe("There are no unresolved orders.\n");
  await doubt(t.db, { key: "k-1", minutes: 1 });
  await doubt(t.db, { key: "k-2", minutes: 9 });
  await doubt(t.db, { key: "k-3", minutes: 5 });
  const first = await t.json("list --unresolved --limit 2");
  expect(first.orders.map((order: { idempotency_key: string }) => order.idempotency_key)).toEqual(["k-2", "k-3"]);
  const second = await t.json(`list --unresolved --limit 2 --after ${first.next}`);
  expect(second).toMatchObject({ orders: [{ idempotency_key: "k-1", status: "unknown" }] });
  expect(second.next).toBeUndefined();

  const shown = await t.orders("list --unresolved --limit 1");
  expect(shown.out).toMatch(
    /k-2 .* desk .* BUY 0\.5 BTC-USD at 60000 .* BROKER_TIMEOUT: no answer�\[31m\n {2}Next page: .*\n$/,
  );
  expect((await t.json("list --status unknown --instrument BTC-USD")).orders).toHaveLength(3);
  expect((await t.orders("list --status aborted")).out).toBe("There are no such orders.\n");
});

test("show finds an order by its key or client order id; an ambiguous key needs --caller", async () => {
  await using t = await setup();
  await doubt(t.db, { key: "k-1" });
  const { out } = await t.orders("show k-1");
  expect(out).toMatch(/status +unknown\n/);
  expect(out).toMatch(
    /\(new\) -> pending .*\n.* pending -> sending +attempt 1 +sender\n.* sending -> unknown .* BROKER_TIMEOUT/,
  );
  expect(await t.json("show tdk-deskk-1")).toMatchObject({
    idempotency_key: "k-1",
    history: [{}, {}, { to: "unknown" }],
  });

  await doubt(t.db, { key: "k-1", caller: "bot" });
  expect(await t.orders("show k-1")).toMatchObject({
    code: 1,
    err: "✗ Several callers have an order with the key k-1. Choose one with --caller: desk, bot.\n",
  });
  expect(await t.json("show k-1 --caller bot")).toMatchObject({ caller: "bot" });
  expect(await t.orders("show k-9")).toMatchObject({ code: 1, err: "✗ There is no order with the key k-9.\n" });
});

test("a resolution is applied, recorded with operator and reason, and wakes running services", async () => {
  await using t = await setup();
  await doubt(t.db, { key: "k-1" });
  await doubt(t.db, { key: "k-2" });
  const woken = new Set<string>();
  await using wakeups = openWakeups({ url: t.url });
  for (const topic of ["orders.outbox_orders", "orders.outbox_events"]) wakeups.on(topic, () => woken.add(topic));
  await wakeups.listening;
  woken.clear(); // A new listener is woken once, for what it may have missed.

  const taken = await t.orders("resolve k-1 --as taken --broker-order-id b-7 --reason in_their_books --by aki --yes");
  expect(taken).toEqual({
    code: 0,
    out: "k-1 is succeeded: the broker has the order, and it is not sent again.\n",
    err: "",
  });
  const not = await t.json("resolve k-2 --as not-taken --reason not_in_their_books --yes");
  expect(not).toMatchObject({ status: "pending", idempotency_key: "k-2" });
  expect(await resolutions(t.db)).toEqual([
    { as: "taken", reason: "in_their_books", by: "aki" },
    { as: "not-taken", reason: "not_in_their_books", by: userInfo().username },
  ]);
  expect(await t.json("show k-1")).toMatchObject({ broker_order_id: "b-7", history: [{}, {}, {}, { by: "aki" }] });
  await until("sender and relay are woken", () => woken.size === 2);

  const again = await t.orders("resolve k-1 --as not-taken --reason slip --yes");
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("The order is not unresolved") });
  expect(await resolutions(t.db)).toHaveLength(2);
});

test("without --yes it asks for confirmation; any input but yes changes nothing", async () => {
  await using t = await setup();
  await doubt(t.db, { key: "k-1" });
  const answered = async (answer: string) => {
    const asked = t.shell.start("orders resolve k-1 --as not-taken --reason fixed", { DATABASE_URL: t.url });
    await asked.untilPrinted('Type "yes" to continue: ');
    asked.process.stdin?.end(answer);
    return asked.ended;
  };
  for (const answer of ["", "y\n", "no\nyes\n"]) {
    const { code, out } = await answered(answer);
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringMatching(/the order is taken twice\.[\s\S]*Nothing was changed\.\n$/),
    });
    expect(await statusOf(t.db, "k-1")).toBe("unknown");
  }
  expect((await answered("yes\n")).out).toMatch(/k-1 is pending: the order is sent again\.\n$/);
  expect(await statusOf(t.db, "k-1")).toBe("pending");
});

test("trading is halted and resumed, for all and for one instrument, with operator and reason", async () => {
  await using t = await setup();
  expect((await t.orders("state")).out).toBe("All instruments are traded.\n");
  const woken: string[] = [];
  await using wakeups = openWakeups({ url: t.url });
  wakeups.on("orders.trading_state", () => woken.push("trading"));
  await wakeups.listening;
  woken.length = 0;
  expect((await t.orders("halt --reason odd_prices --by aki")).out).toMatch(/\(all\) +halt +\S+Z +aki +odd_prices\n$/);
  await until("the senders are woken", () => woken.length > 0);
  await t.orders("cancel-only BTC-USD --reason thin_market");
  await t.orders("resume --reason fixed");
  expect(await t.json("state")).toMatchObject({
    states: [
      { scope: "*", mode: "active", reason: "fixed" },
      { scope: "BTC-USD", mode: "cancel-only" },
    ],
  });
  expect((await t.orders("state")).out).toMatch(/^ {2}instrument .*\n {2}BTC-USD +cancel-only .* thin_market\n$/);
  const { rows } = await t.db.query(
    `select scope, from_mode, to_mode, set_by from trading_state_audit order by audit_id`,
  );
  expect(rows.slice(0, 1)).toEqual([{ scope: "*", from_mode: "active", to_mode: "halt", set_by: "aki" }]);
  expect(rows).toHaveLength(3);
  const slip = await t.orders("halt BTC-USDT --reason odd_prices");
  expect(slip).toMatchObject({ code: 1, err: expect.stringContaining("BTC-USDT is not on the list of instruments") });
});

test("cancel-all cancels open orders, by instrument and caller, in batches, and wakes the canceller", async () => {
  await using t = await setup();
  for (let n = 0; n < 103; n++) await accept(t.db, { key: `k-${n}` });
  await accept(t.db, { key: "other", caller: "bot" });
  await doubt(t.db, { key: "sent" });
  const woken: string[] = [];
  await using wakeups = openWakeups({ url: t.url });
  wakeups.on("orders.cancel_requests", () => woken.push("cancels"));
  await wakeups.listening;
  woken.length = 0;
  expect((await t.json("cancel-all --yes --caller bot --by aki")).results).toMatchObject([
    { result: "cancelled", order: { idempotency_key: "other", reason: "cancelled by aki" } },
  ]);
  expect((await t.orders("cancel-all --yes --instrument ETH-USD")).out).toBe("There are no open orders.\n");
  const { code, out } = await t.orders("cancel-all --yes");
  expect(code).toBe(0);
  expect(out).toMatch(/sent +desk +BUY 0\.5 BTC-USD at 60000 +requested: the broker is asked/);
  expect(out).toMatch(/104 orders, 1 to be cancelled at the broker/);
  await until("the canceller is woken", () => woken.length > 0);
  expect(await statusOf(t.db, "k-102")).toBe("aborted");
  expect((await t.json("cancel-all --yes")).results).toMatchObject([{ result: "requested" }]);
});

test.each([
  ["", "Give a subcommand: "],
  ["lst", 'There is no subcommand "lst". Did you mean "list"?'],
  ["list k-1", "todoke orders show"],
  ["list --limit 0", "--limit is a number from 1 to 1000."],
  ["list --status sent", "--status is one of pending, sending,"],
  ["list --after 3", "--after is the cursor at the end of the previous page."],
  ["list --unresolved --status failed", "cannot be combined with --status or --instrument"],
  ["show", "Name one order by its idempotency key."],
  ["show a --yes", "--yes is not an option of show."],
  ["resolve a", "Say whether the broker has the order: --as taken or --as not-taken."],
  ["resolve a --as lost --reason b", "--as taken or --as not-taken."],
  ["resolve a --as taken", "Give a reason with --reason, 1 to 500 characters."],
  ["resolve a --as not-taken --reason b --broker-order-id c", "needs --as taken"],
  ["cancel-all", "Confirm with --yes."],
  ["cancel-all k-1 --yes", "cancel-all takes no arguments."],
  ["halt", "Give a reason with --reason"],
  ["halt A B --reason c", "Name one instrument, or none for all."],
  ["state A", "state takes no arguments"],
])('"orders %s" is rejected with what to do', async (args, says) => {
  const { code, out, err } = await runTodoke(`orders ${args}`, { DATABASE_URL: "postgres://127.0.0.1:1/none" });
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(says);
  expect(err).toContain("Usage: todoke orders ");
});
