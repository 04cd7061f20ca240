/**
 * `npm run drill:restore`: a restore to a point in time, under load, with NATS and a broker that are not restored with the database.
 *
 * It takes a base backup while commands arrive, loses the server, restores it up to a named point, does what docs/guides/backup.md says,
 * and counts what is lost, doubled or notified twice. It exits with 1 if a guarantee of that page does not hold.
 */
import { spawn } from "node:child_process";
import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { startSimulator } from "@todoke/orders/simulator/testing";
import pg from "pg";
import { writeInstruments } from "./orders.ts";
import { todoke } from "./service-process.ts";

const names = ["entitlement", "notification", "points", "orders"] as const;
const token = "tdk_drill";
const wait = { withinMs: 120_000 };

await using parts = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), "todoke-drill-"));
parts.defer(() => rmSync(folder, { recursive: true, force: true }));
chmodSync(folder, 0o755);
const archive = join(folder, "archive");
mkdirSync(archive);
chmodSync(archive, 0o777); // The server may run as another user.

const say = (text: string) => console.log(text);
let nats = parts.use(await startEngine("nats"));
const broker = parts.use(await startSimulator("--window-ms", "600000"));

const settings = (databaseUrl: string) => ({
  PATH: process.env.PATH,
  DATABASE_URL: databaseUrl,
  EVENT_BUS_URL: nats.url,
  LOG_LEVEL: "info",
  TODOKE_API_KEYS: `drill=entitlements:write+points:write+orders:write+read=${hash("sha256", token, "hex")}`,
  ORDERS_INSTRUMENTS: writeInstruments(folder, 1_000),
  ORDERS_BROKER: "http",
  ORDERS_BROKER_URL: broker.url.href,
  ORDERS_BROKER_SECRET: broker.secret,
  ORDERS_BROKER_DEDUPES: "true",
  ORDERS_BROKER_WINDOW_MS: "600000",
});

/** Every notification that a process has sent, by event: the line of the sender `log`. */
const notifiedCounts = new Map<string, number>();

async function serve(databaseUrl: string) {
  const ports = await Promise.all(names.map(async (name) => [name, await freePort()] as const));
  const env = {
    ...settings(databaseUrl),
    ...Object.fromEntries(ports.map(([name, port]) => [`${name.toUpperCase()}_PORT`, String(port)])),
  };
  const child = spawn(process.execPath, [todoke, "serve", "--migrate", ...names], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let rest = "";
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-4_000);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.includes("notification_id") || !line.includes("event_id")) continue;
      const { event_id } = JSON.parse(line) as { event_id: string };
      notifiedCounts.set(event_id, (notifiedCounts.get(event_id) ?? 0) + 1);
    }
  });
  const exited = once(child, "exit");
  parts.defer(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const urls = Object.fromEntries(ports.map(([name, port]) => [name, `http://127.0.0.1:${port}`]));
  await until(
    "the services are ready",
    async () => {
      if (child.exitCode !== null) throw new Error(`the services did not start:\n${output}`);
      const all = await Promise.all(names.map((name) => fetch(`${urls[name]}/readyz`).catch(() => undefined)));
      return all.every((response) => response?.ok);
    },
    wait,
  );
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return { urls, stop };
}

type Urls = Awaited<ReturnType<typeof serve>>["urls"];

/** One grant, one addition of points and one order, under one key; resolves with the key when all three are answered. */
async function command(urls: Urls): Promise<string> {
  const key = randomUUID();
  const send = async (url: string, method: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": key };
    const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    await response.text();
  };
  await send(`${urls.entitlement}/v1/entitlements/grants`, "POST", {
    user_id: "u",
    stock_keeping_unit: key,
    reason: "purchase",
    purchase_id: key,
  });
  await send(`${urls.points}/point/add`, "PUT", { user_id: key, point_amount: 7 });
  const order = { instrument: "BTC-USD", side: "BUY", qty: "0.5", price: null, requested_at: "2026-01-31T09:30:00Z" };
  await send(`${urls.orders}/do/order`, "POST", { idempotency_key: key, order_id: key, ...order });
  return key;
}

async function many(urls: Urls, count: number): Promise<string[]> {
  const keys: string[] = [];
  while (keys.length < count) keys.push(...(await Promise.all([1, 2, 3, 4].map(() => command(urls)))));
  return keys;
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {}); // The server is killed.
  await client.connect();
  return client;
}

const failures: string[] = [];
function expectThat(what: string, actual: unknown, expected: unknown): void {
  const holds = JSON.stringify(actual) === JSON.stringify(expected);
  say(
    `${holds ? "✓" : "✗"} ${what}: ${JSON.stringify(actual)}${holds ? "" : `, expected ${JSON.stringify(expected)}`}`,
  );
  if (!holds) failures.push(what);
}

/** How many of the keys have exactly one, and how many have any, grant, transaction and order. */
async function countKeys(db: pg.Client, keys: readonly string[]) {
  const sql = `with k as (select unnest($1::text[]) as key), c as (
    select (select count(*) from entitlement.entitlements where stock_keeping_unit = key) as grants,
           (select count(*) from points.point_transactions where user_id = key) as points,
           (select count(*) from orders.outbox_orders where idempotency_key = key) as orders
      from k)
    select count(*) filter (where grants = 1 and points = 1 and orders = 1)::int as once,
           count(*) filter (where grants + points + orders > 0)::int as any,
           count(*) filter (where grants > 1 or points > 1 or orders > 1)::int as doubled from c`;
  return (await db.query(sql, [keys])).rows[0] as { once: number; any: number; doubled: number };
}

// 1. Commands, a base backup while they arrive, more commands, the point, more commands.
const primary = parts.use(
  await startEngine("postgres", {
    dir: join(folder, "primary"),
    settings: { wal_level: "replica", archive_mode: "on", archive_command: `cp %p ${archive}/%f` },
  }),
);
const first = await serve(primary.url);
const db = await connectTo(primary.url);
const source = join(folder, "primary/data");
const target = join(folder, "restored/data");
const before = await many(first.urls, 40);
await db.query("select pg_backup_start('drill', true)");
const during = many(first.urls, 60);
cpSync(source, target, {
  recursive: true,
  preserveTimestamps: true,
  filter: (path) => !/^(pg_wal\/.+|postmaster\.(pid|opts))$/.test(relative(source, path)),
});
const { labelfile } = (await db.query("select labelfile from pg_backup_stop()")).rows[0];
before.push(...(await during), ...(await many(first.urls, 40)));
await until(
  "the notifications of these commands are sent",
  async () =>
    (
      await db.query(
        `select from notification.notifications where status = 'SENT' and event_type = 'EntitlementGranted'`,
      )
    ).rowCount === before.length,
  wait,
);
// A burst, and the point in the middle of it: some commands are answered, and not yet published, consumed, notified or sent to
// the broker.
const burst: string[] = [];
const commands = Array.from({ length: 120 }, async () => void burst.push(await command(first.urls)));
await until("the first of the burst are answered", () => burst.length > 0, wait);
before.push(...burst);
const notifiedBefore = new Map(notifiedCounts);
await db.query("select pg_create_restore_point('drill')");
const pointAt = (await db.query("select clock_timestamp() as at")).rows[0].at as Date;
await Promise.all(commands);
const inFlight = burst.filter((key) => !before.includes(key));
const after = await many(first.urls, 60);
await until(
  "the broker has taken every order",
  () => broker.taken().length === before.length + inFlight.length + after.length,
  wait,
);
await until(
  "all are notified",
  async () =>
    (
      await db.query(
        `select from notification.notifications where status = 'SENT' and event_type = 'EntitlementGranted'`,
      )
    ).rowCount ===
    before.length + inFlight.length + after.length,
  wait,
);
await db.query("select pg_switch_wal()");
await until(
  "the log is archived",
  async () => (await db.query(`select from pg_stat_archiver where last_archived_time > $1`, [pointAt])).rowCount === 1,
  wait,
);
say(
  `answered before the point: ${before.length} commands of each kind; in flight: ${inFlight.length}; sent after it: ${after.length}`,
);
say("the server is lost");
await first.stop();
await primary.kill();

// 2. The restore.
const { uid, gid } = statSync(source);
writeFileSync(join(target, "backup_label"), labelfile);
writeFileSync(join(target, "recovery.signal"), "");
await chownAll(target, uid, gid);
const restored = parts.use(
  await startEngine("postgres", {
    dir: join(folder, "restored"),
    settings: {
      restore_command: `cp ${archive}/%f %p`,
      recovery_target_name: "drill",
      recovery_target_action: "promote",
    },
  }),
);
const now = await connectTo(restored.url);
parts.defer(() => now.end());
await until("it is promoted", async () => !(await now.query("select pg_is_in_recovery() as is")).rows[0].is, wait);
say("\nafter the restore:");
expectThat("answered before the point: there exactly once", (await countKeys(now, before)).once, before.length);
const kept = (await countKeys(now, inFlight)).any;
say(`  in flight at the point: ${kept} of ${inFlight.length} have taken effect, in whole or in part`);
expectThat("sent after the point: gone", (await countKeys(now, after)).any, 0);

const { rows: unnotified } = await now.query(
  `select count(*)::int as count from entitlement.outbox_events e where status = 'PUBLISHED'
      and not exists (select from notification.processed_events p where p.event_id = e.event_id)`,
);
say(
  `  grants published before the point and consumed after it: ${unnotified[0].count}; NATS does not deliver them again`,
);
const counted = await now.query(
  `select (select count(*)::int from entitlement.entitlements) as grants, (select count(*)::int from orders.outbox_orders) as orders,
          (select count(*)::int from orders.outbox_orders where status <> 'succeeded') as unsent`,
);
const { grants, orders, unsent } = counted.rows[0] as { grants: number; orders: number; unsent: number };
say(`  orders that the broker has and that are not sent here: ${unsent}`);

// 3. What the guide says: no messages from before, publish again, look at the broker.
// A server without data, as after the deletion of every stream.
await nats[Symbol.asyncDispose]();
nats = parts.use(await startEngine("nats"));
const again = { published: 0 };
for (const schema of ["entitlement", "points", "orders"]) {
  const { rowCount } = await now.query(
    `update ${schema}.outbox_events
        set status = 'PENDING', published_at = null, attempt_count = 0, next_retry_at = clock_timestamp()
      where status = 'PUBLISHED' and published_at >= $1::timestamptz - interval '1 hour'`,
    [pointAt],
  );
  again.published += rowCount ?? 0;
}
const second = await serve(restored.url);
await until(
  "every event is published and every notification sent",
  async () => {
    const { rows } = await now.query(
      `select (select count(*) from entitlement.outbox_events where status <> 'PUBLISHED') +
              (select count(*) from points.outbox_events where status <> 'PUBLISHED') +
              (select count(*) from orders.outbox_events where status <> 'PUBLISHED') +
              (select count(*) from orders.outbox_orders where status <> 'succeeded') +
              (select count(*) from notification.notifications where status <> 'SENT') +
              (select count(*) from entitlement.outbox_events e
                where not exists (select from notification.processed_events p where p.event_id = e.event_id)) as waiting`,
    );
    return Number(rows[0].waiting) === 0;
  },
  wait,
);
say("\nafter the steps of the guide:");
expectThat("commands that have an effect twice", (await countKeys(now, [...before, ...inFlight])).doubled, 0);
say(`  ${again.published} events were published again`);
const { rows: notified } = await now.query(
  `select count(*)::int as count, count(distinct event_id)::int as events from notification.notifications where event_type = 'EntitlementGranted'`,
);
expectThat("notifications of grants, and their events", notified[0], { count: grants, events: grants });
expectThat("commands there exactly once", (await countKeys(now, before)).once, before.length);
const { rows: ours } = await now.query(
  `select event_id, payload->>'stock_keeping_unit' as key from entitlement.outbox_events`,
);
const eventIds = new Set(ours.map(({ event_id }) => event_id));
const twice = [...eventIds].filter((id) => (notifiedCounts.get(id) ?? 0) > 1).length;
const lateAtPoint = [...eventIds].filter((id) => !notifiedBefore.has(id)).length;
say(`  grants of which users were notified twice: ${twice}, of ${lateAtPoint} that were not notified yet at the point`);
expectThat("no grant that was notified before the point is notified again", twice <= lateAtPoint, true);
expectThat(
  "every grant is notified",
  [...eventIds].every((id) => notifiedCounts.has(id)),
  true,
);

// 4. The broker.
const taken = broker.taken().map((order) => JSON.stringify(order));
expectThat("orders that the broker has taken twice", taken.length - new Set(taken).size, 0);
const expected = broker.taken().length - orders;
/** By kind, of the last reconciliation. */
async function readMismatches(): Promise<Record<string, number>> {
  const { rows } = await now.query(
    `select d->>'kind' as kind, count(*)::int as count from orders.reconciliations, jsonb_array_elements(details) as d group by kind`,
  );
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count]));
}
const { rows: reconciled } = await now.query(`select clock_timestamp() as since`);
await until(
  "a reconciliation has run after the orders were sent",
  async () =>
    (
      await now.query(
        `select from orders.reconciliations where last_started_at > $1 and last_ok_at > last_started_at`,
        [reconciled[0].since],
      )
    ).rowCount === 1,
  wait,
);
say(`  mismatches by the reconciliation: ${JSON.stringify(await readMismatches())}`);
const [{ mismatches }] = (await now.query(`select mismatches::int from orders.reconciliations`)).rows;
expectThat("orders that only the broker has (not-ours)", mismatches, expected);
await second.stop();
say(failures.length === 0 ? "\nNothing lost, nothing doubled up to the point." : `\n${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;

async function chownAll(path: string, uid: number, gid: number): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const child = spawn("chown", ["-R", `${uid}:${gid}`, path], { stdio: "inherit" });
  await once(child, "exit");
}
