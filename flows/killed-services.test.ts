/**
 * Two processes of entitlement and two senders, on every bus: one is killed while it holds work, then the other is stopped. Every accepted
 * grant makes one notification; work of a dead process resumes after its lease, work of a stopped one at once.
 */
import * as entitlement from "@todoke/entitlement";
import type { Db } from "@todoke/kernel/db";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { expect, test } from "vitest";
import { type BusKind, busKinds, startMessageBroker } from "./buses.ts";
import { grantEnv, startGrantLoad } from "./grant-load.ts";
import { type ServiceProcess, serve } from "./service-process.ts";

const perSecond = 20;
/** The default of every worker and every bus. */
const leaseMs = 30_000;
/**
 * Work of a dead process is done after its lease, plus time for a busy machine. Work of a stopped process must be done much
 * earlier: anything that it kept would come back only after its lease.
 */
const [resumedMsMax, handedOverMsMax] = [4 * leaseMs, leaseMs / 2];

/** A claimed table. */
interface ClaimedTable {
  readonly table: string;
  readonly key: string;
  readonly done: string;
}

const events: ClaimedTable = { table: "entitlement.outbox_events", key: "event_id", done: "PUBLISHED" };
const notifications: ClaimedTable = { table: "notification.notifications", key: "notification_id", done: "SENT" };

async function claimedRows({ pid }: ServiceProcess, { table, key }: ClaimedTable, db: Db): Promise<readonly string[]> {
  const { rows } = await db.query(
    `select ${key} as key from ${table} where lease_until is not null and locked_by like '%:' || $1 || ':%'`,
    [pid],
  );
  return rows.map((row) => row.key);
}

/**
 * PENDING rows that a transaction has locked: work that is completed without claims. The transaction of a live process ends
 * within milliseconds, so rows that stay locked belong to the stopped one.
 */
async function lockedRows({ table, key }: ClaimedTable, db: Db): Promise<readonly string[]> {
  const { rows } = await db.query(
    `with free as materialized (select ${key} as key from ${table} where status = 'PENDING' for update skip locked)
     select ${key} as key from ${table} where status = 'PENDING' and ${key} not in (select key from free)`,
  );
  return rows.map((row) => row.key);
}

const heldRows = async (process: ServiceProcess, work: ClaimedTable, db: Db): Promise<readonly string[]> => [
  ...(await claimedRows(process, work, db)),
  ...(await lockedRows(work, db)),
];

/** Stops a process (SIGSTOP) while it holds rows, by a claim or in a transaction, and returns their keys. */
async function stopWithWork(process: ServiceProcess, work: ClaimedTable, db: Db): Promise<readonly string[]> {
  let held: readonly string[] = [];
  const isStoppedWithWork = async () => {
    // Not stopped before it holds rows: a process that is stopped all the time makes no progress.
    if ((await heldRows(process, work, db)).length === 0) return false;
    process.signal("SIGSTOP");
    await waitForStatements(db);
    const heldFirst = new Set(await heldRows(process, work, db));
    await waitForStatements(db);
    held = (await heldRows(process, work, db)).filter((row) => heldFirst.has(row));
    if (held.length === 0) process.signal("SIGCONT");
    return held.length > 0;
  };
  await until(`process ${process.pid} holds rows of ${work.table}`, isStoppedWithWork);
  return held;
}

/** Statements that the process sent before it was stopped still take effect. Statements that wait for its locks do not end. */
async function waitForStatements(db: Db): Promise<void> {
  const stoppedAt = await databaseNow(db);
  const running = `select from pg_stat_activity
                    where datname = current_database() and state = 'active' and query_start <= $1::timestamptz
                      and wait_event_type is distinct from 'Lock'`;
  await until("statements end", async () => (await db.query(running, [stoppedAt])).rowCount === 0);
}

const databaseNow = async (db: Db): Promise<string> =>
  (await db.query(`select clock_timestamp()::text as now`)).rows[0].now;

async function allDone(db: Db, { table, key, done }: ClaimedTable, keys: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.query(`select from ${table} where ${key} = any($1::uuid[]) and status <> $2`, [
    keys,
    done,
  ]);
  return rowCount === 0;
}

/** Number of events in a time span without a sent notification. */
async function countUnnotified(db: Db, [from, to]: readonly [string, string]): Promise<number> {
  const { rowCount } = await db.query(
    `select from entitlement.outbox_events e
      where e.created_at between $1::timestamptz and $2::timestamptz
        and not exists (select from notification.notifications n where n.event_id = e.event_id and n.status = 'SENT')`,
    [from, to],
  );
  return rowCount ?? 0;
}

/** Two processes of entitlement and two senders on one database and one bus, under load. */
async function openSetup(kind: BusKind, parts: AsyncDisposableStack) {
  const t = parts.use(await testDatabase({ sets: [] }));
  const messageBroker = parts.use(await startMessageBroker(kind, t.url));
  const env = { ...grantEnv, DATABASE_URL: t.url, EVENT_BUS_URL: messageBroker.url };
  for (const service of [entitlement, notification]) await service.migrate(env, { dryRun: false });
  // A process that consumes and sends to the log inserts notifications as SENT. Senders of their own claim them.
  const rolesOf = {
    entitlement: {},
    consumer: { NOTIFICATION_ROLES: "consumer" },
    sender: { NOTIFICATION_ROLES: "sender" },
  };
  const start = async (kind: keyof typeof rolesOf) =>
    parts.use(await serve(kind === "entitlement" ? kind : "notification", { ...env, ...rolesOf[kind] }));
  const entitlementProcesses = [await start("entitlement"), await start("entitlement")];
  await start("consumer");
  const senderProcesses = [await start("sender"), await start("sender")];
  const grants = startGrantLoad(perSecond, () => entitlementProcesses.map(({ url }) => url));
  parts.defer(() => grants.stop().catch(() => {})); // A test that came this far has seen the error.
  const getNotifications = async () =>
    (await t.db.query(`select user_id, status from notification.notifications order by user_id collate "C"`)).rows;
  await until("notifications arrive", async () => (await getNotifications()).length > perSecond);
  return { db: t.db, start, entitlementProcesses, senderProcesses, grants, getNotifications };
}

test.concurrent.each(busKinds)(
  "%s: every grant makes one notification when processes are killed and stopped",
  { timeout: 600_000 },
  async (kind) => {
    await using parts = new AsyncDisposableStack();
    const { db, start, entitlementProcesses, senderProcesses, grants, getNotifications } = await openSetup(kind, parts);
    const [entitlementProcess, senderProcess] = [
      entitlementProcesses[0] as ServiceProcess,
      senderProcesses[0] as ServiceProcess,
    ];

    const heldEvents = await stopWithWork(entitlementProcess, events, db);
    const heldNotifications = await stopWithWork(senderProcess, notifications, db);
    for (const process of [entitlementProcess, senderProcess]) process.signal("SIGKILL");
    await Promise.all([entitlementProcess.exited, senderProcess.exited]);
    const killed = await databaseNow(db);

    entitlementProcesses.push(await start("entitlement"));
    senderProcesses.push(await start("sender"));
    for (const [survivor, work] of [
      [entitlementProcesses[1] as ServiceProcess, events],
      [senderProcesses[1] as ServiceProcess, notifications],
    ] as const) {
      await stopWithWork(survivor, work, db); // It must have work to finish or to hand over.
      for (const signal of ["SIGTERM", "SIGCONT"] as const) survivor.signal(signal);
      expect(await survivor.exited).toBe(0);
      expect(await claimedRows(survivor, work, db)).toEqual([]);
      const span = [killed, await databaseNow(db)] as const;
      const isHandedOver = async () => (await countUnnotified(db, span)) === 0;
      await until("its peers have finished its work", isHandedOver, { withinMs: handedOverMsMax });
    }

    await grants.stop();
    const isResumed = async () =>
      (await allDone(db, events, heldEvents)) && (await allDone(db, notifications, heldNotifications));
    await until("the work of the dead processes is done", isResumed, { withinMs: resumedMsMax });

    const users = grants.results.map(({ user }) => user).sort();
    const sent = async () => (await getNotifications()).filter(({ status }) => status === "SENT").length;
    await until("every user is notified", async () => (await sent()) >= users.length);
    expect(await getNotifications()).toEqual(users.map((user_id) => ({ user_id, status: "SENT" })));
  },
);
