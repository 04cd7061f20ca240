/**
 * Each service as its own process, two of each, on every bus: one of each is killed with -9 while it holds work, then the
 * other one is told to stop. Whatever was answered is told once, the dead ones' work resumes when their leases end, and
 * the work of those that stop is with their peers at once.
 */
import * as entitlement from "@todoke/entitlement";
import type { Db } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { expect, test } from "vitest";
import { type BusKind, busKinds, startBroker } from "./buses.ts";
import { grantingEnv, startGranting } from "./granting.ts";
import { type Serving, serve } from "./serving.ts";

const perSecond = 40;
/** What every worker and every bus has by default. */
const leaseMs = 30_000;
/**
 * Work of the dead is done when its lease is over, and a busy machine has had its time. What is handed over is not waited for
 * so long: of what a process or its bus kept to itself, nothing would come back before the lease is over.
 */
const [resumedMsMax, handedOverMsMax] = [4 * leaseMs, leaseMs / 2];

/** The rows of `table` that a process holds. */
interface Work {
  readonly table: string;
  readonly key: string;
  readonly done: string;
}

const events: Work = { table: "entitlement.outbox_events", key: "event_id", done: "PUBLISHED" };
const notifications: Work = { table: "notification.notifications", key: "notification_id", done: "SENT" };

async function heldBy({ pid }: Serving, { table, key }: Work, db: Db): Promise<readonly string[]> {
  const { rows } = await db.query(
    `select ${key} as key from ${table} where lease_until is not null and locked_by like '%:' || $1 || ':%'`,
    [pid],
  );
  return rows.map((row) => row.key);
}

/** Freezes a process at a moment at which it holds work; it can do nothing until it is let go. */
async function freezeHolding(doomed: Serving, work: Work, db: Db): Promise<readonly string[]> {
  let held: readonly string[] = [];
  const isCaught = async () => {
    // Until it seems to hold something it is left to work: one that is stopped again and again gets nowhere.
    if ((await heldBy(doomed, work, db)).length === 0) return false;
    doomed.signal("SIGSTOP");
    await untilStatementsEnd(db);
    held = await heldBy(doomed, work, db);
    if (held.length === 0) doomed.signal("SIGCONT");
    return held.length > 0;
  };
  await until(`process ${doomed.pid} holds rows of ${work.table}`, isCaught);
  return held;
}

/** What a process had sent before it was frozen still takes effect. Who waits for a lock of the frozen one waits on. */
async function untilStatementsEnd(db: Db): Promise<void> {
  const frozen = await nowIn(db);
  const running = `select from pg_stat_activity
                    where datname = current_database() and state = 'active' and query_start <= $1::timestamptz
                      and wait_event_type is distinct from 'Lock'`;
  await until("statements end", async () => (await db.query(running, [frozen])).rowCount === 0);
}

const nowIn = async (db: Db): Promise<string> => (await db.query(`select clock_timestamp()::text as now`)).rows[0].now;

async function areDone(db: Db, { table, key, done }: Work, keys: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.query(`select from ${table} where ${key} = any($1::uuid[]) and status <> $2`, [
    keys,
    done,
  ]);
  return rowCount === 0;
}

/** Events of a span of time whose user has not been told. */
async function untoldBetween(db: Db, [from, to]: readonly [string, string]): Promise<number> {
  const { rowCount } = await db.query(
    `select from entitlement.outbox_events e
      where e.created_at between $1::timestamptz and $2::timestamptz
        and not exists (select from notification.notifications n where n.event_id = e.event_id and n.status = 'SENT')`,
    [from, to],
  );
  return rowCount ?? 0;
}

/** Two of each service on one database and one bus, under load. */
async function openTown(kind: BusKind, parts: AsyncDisposableStack) {
  const t = parts.use(await testDatabase({ sets: [] }));
  const broker = parts.use(await startBroker(kind, t.url));
  const env = { ...grantingEnv, DATABASE_URL: t.url, EVENT_BUS_URL: broker.url };
  for (const service of [entitlement, notification]) await service.migrate(env, { dryRun: false });
  const start = async (name: "entitlement" | "notification") => parts.use(await serve(name, env));
  const granters = [await start("entitlement"), await start("entitlement")];
  const tellers = [await start("notification"), await start("notification")];
  const grants = startGranting(perSecond, () => granters.map(({ url }) => url));
  parts.defer(() => grants.stop().catch(() => {})); // A test that has got so far has heard of it.
  const told = async () =>
    (await t.db.query(`select user_id, status from notification.notifications order by user_id collate "C"`)).rows;
  await until("the road is open", async () => (await told()).length > perSecond);
  return { db: t.db, start, granters, tellers, grants, told };
}

test.concurrent.each(busKinds)(
  "%s: of two processes of each service one is killed and one is stopped, and every grant is told once",
  { timeout: 600_000 },
  async (kind) => {
    await using parts = new AsyncDisposableStack();
    const { db, start, granters, tellers, grants, told } = await openTown(kind, parts);
    const [granter, teller] = [granters[0] as Serving, tellers[0] as Serving];

    const heldEvents = await freezeHolding(granter, events, db);
    const heldNotifications = await freezeHolding(teller, notifications, db);
    for (const doomed of [granter, teller]) doomed.signal("SIGKILL");
    await Promise.all([granter.exited, teller.exited]);
    const killed = await nowIn(db);

    granters.push(await start("entitlement"));
    tellers.push(await start("notification"));
    for (const [survivor, work] of [
      [granters[1] as Serving, events],
      [tellers[1] as Serving, notifications],
    ] as const) {
      await freezeHolding(survivor, work, db); // So that it has something to finish, or to hand over.
      for (const signal of ["SIGTERM", "SIGCONT"] as const) survivor.signal(signal);
      expect(await survivor.exited).toBe(0);
      expect(await heldBy(survivor, work, db)).toEqual([]);
      const span = [killed, await nowIn(db)] as const;
      const isHandedOver = async () => (await untoldBetween(db, span)) === 0;
      await until("its peers have done what it left", isHandedOver, { withinMs: handedOverMsMax });
    }

    const isResumed = async () =>
      (await areDone(db, events, heldEvents)) && (await areDone(db, notifications, heldNotifications));
    await until("the work of the dead is done", isResumed, { withinMs: resumedMsMax });

    await grants.stop();
    const users = grants.answered.map(({ user }) => user).sort();
    const sent = async () => (await told()).filter(({ status }) => status === "SENT").length;
    await until("everybody has heard", async () => (await sent()) >= users.length);
    expect(await told()).toEqual(users.map((user_id) => ({ user_id, status: "SENT" })));
  },
);
