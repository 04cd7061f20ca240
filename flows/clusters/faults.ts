/** What the cluster runs share: faults one after the other under a constant load of grants, their table, and the check at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "@todoke/engines";
import * as entitlement from "@todoke/entitlement";
import type { EventBus } from "@todoke/kernel/bus";
import { openDb } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import * as notification from "@todoke/notification";
import { type GrantLoad, grantEnv, startGrantLoad } from "../grant-load.ts";

const perSecond = 50;
/** How long a fault lasts. */
export const faultMs = 10_000;
export const wait = { withinMs: 120_000 };

export interface ClusterRun extends AsyncDisposable {
  readonly load: GrantLoad;
  /** `count("notification.notifications")`. Rejects while the database is unavailable. */
  count(what: string): Promise<number>;
  /** The user of every row: `users("notification.notifications")`. */
  users(table: string): Promise<readonly string[]>;
}

export interface GrantServices {
  readonly databaseUrl: string;
  readonly openBus: (name: string) => Promise<EventBus>;
}

/** Starts entitlement, notification and the load, and watches from outside of the services what becomes of the grants. */
export async function startGrants({ databaseUrl, openBus }: GrantServices): Promise<ClusterRun> {
  await using parts = new AsyncDisposableStack();
  const env = { ...grantEnv, DATABASE_URL: databaseUrl, ENTITLEMENT_PORT: "0", NOTIFICATION_PORT: "0" };
  await entitlement.migrate(env, { dryRun: false });
  await notification.migrate(env, { dryRun: false });
  const { url } = parts.use(await entitlement.start(env, { openBus }));
  parts.use(await notification.start(env, { openBus }));
  // Short: a database that does not answer is no progress.
  const db = openDb({ url: databaseUrl, poolMax: 3, statementTimeoutMs: 1_000, applicationName: "cluster run" });
  parts.defer(() => db.end());
  const load = startGrantLoad(perSecond, () => [url], { responseMsMax: 15_000, attemptsMax: 1_000 });
  const all = parts.move();
  return {
    load,
    count: async (what) => Number((await db.query(`select count(*) from ${what}`)).rows[0].count),
    users: async (table) => (await db.query(`select user_id from ${table}`)).rows.map(({ user_id }) => user_id),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export type Faults = Readonly<Record<string, () => Promise<unknown>>>;

export const elapsed = (ms: number) => sleep(ms);

/** The faults of three servers of a message broker, of which `leader` leads. */
export const brokerFaults = (servers: readonly Engine[], leader: () => Promise<Engine>): Faults => ({
  "no fault": () => elapsed(faultMs),
  "leader killed, back after 10 s": async () => killFor([await leader()]),
  "leader frozen for 10 s": async () => {
    const { pid } = await leader();
    process.kill(pid as number, "SIGSTOP");
    await elapsed(faultMs).finally(() => process.kill(pid as number, "SIGCONT"));
  },
  "two of three killed, back after 10 s": async () => {
    const first = await leader();
    const other = servers.find((each) => each !== first) as Engine;
    await killFor([first, other]);
  },
  "each restarted, one after the other": async () => {
    for (const engine of servers) {
      await engine.kill();
      await engine.start();
      await elapsed(faultMs / 2);
    }
  },
});

/** Kills the servers at once, and starts them when the fault has lasted. */
async function killFor(victims: readonly Engine[]): Promise<void> {
  await Promise.all(victims.map((engine) => engine.kill()));
  await elapsed(faultMs);
  await Promise.all(victims.map((engine) => engine.start()));
}

/** The longest time without progress, in ms, as long as it is watched. A failure is no progress. */
export function watchPauses(progress: () => Promise<number>) {
  let [seen, since, longest, isWatching] = [-1, performance.now(), 0, true];
  const watching = (async () => {
    while (isWatching) {
      const now = await progress().catch(() => -1);
      longest = Math.max(longest, performance.now() - since);
      if (now > seen) [seen, since] = [now, performance.now()];
      await sleep(20);
    }
  })();
  return async () => {
    isWatching = false;
    await watching;
    return longest;
  };
}

export const formatSeconds = (ms: number) => (ms / 1_000).toFixed(1);

/** Injects each fault, waits until all that was granted is notified, and returns a row of the table for each. */
export async function measureFaults(faults: Faults, { load, count }: ClusterRun): Promise<readonly string[]> {
  const sent = () => count(`notification.notifications where status = 'SENT'`);
  const unpublished = () => count(`entitlement.outbox_events where status <> 'PUBLISHED'`);
  const rows: string[] = [];
  await until("notifications are sent", async () => (await sent()) >= perSecond, wait);
  for (const [name, inject] of Object.entries(faults)) {
    const notified = watchPauses(sent);
    const answered = watchPauses(async () => load.results.length);
    await inject();
    const endedAt = performance.now();
    const below = (limit: number) => async () => (await unpublished().catch(() => limit)) < limit;
    await until(`the backlog is gone after: ${name}`, below(perSecond), wait);
    const drained = performance.now() - endedAt;
    const granted = load.results.length;
    await until("they are notified", async () => (await sent().catch(() => 0)) >= granted, wait);
    rows.push(
      `| ${name} | ${formatSeconds(await answered())} | ${formatSeconds(await notified())} | ${formatSeconds(drained)} |`,
    );
    console.log(rows.at(-1));
  }
  return rows;
}

export interface Totals {
  readonly grants: number;
  readonly lost: number;
  readonly doubled: number;
  /** Answered with another status than 201. */
  readonly refused: number;
  /** Answered at a later attempt than the first. */
  readonly repeated: number;
  readonly deadLetters: number;
}

/** Stops the load, waits until every user is notified, and counts what went wrong. */
export async function checkGrants({ load, count, users: usersOf }: ClusterRun): Promise<Totals> {
  await load.stop();
  const users = load.results.map(({ user }) => user);
  let all: readonly string[] = [];
  const allNotified = async () => {
    all = await usersOf("notification.notifications").catch(() => []);
    return all.length >= users.length;
  };
  await until("every user is notified", allNotified, wait);
  const once = new Set(all);
  return {
    grants: users.length,
    lost: users.filter((user) => !once.has(user)).length,
    doubled: all.length - once.size,
    refused: load.results.filter(({ status }) => status !== 201).length,
    repeated: load.results.filter(({ attempts }) => attempts > 1).length,
    deadLetters:
      (await count(`notification.inbox_dlq`)) + (await count(`entitlement.outbox_events where status = 'FAILED'`)),
  };
}

const header = `| fault | longest pause of answers, s | longest pause of notifications, s | backlog gone after, s |
|---|---|---|---|`;

export const printResult = (rows: readonly string[], totals: Totals): void =>
  console.log(`${header}\n${rows.join("\n")}\n\n${formatTotals(totals)}`);

/** The faults of a message broker, for which grants never wait: each must be answered at its first attempt. */
export async function runBusFaults(faults: Faults, run: ClusterRun): Promise<void> {
  const rows = await measureFaults(faults, run);
  const totals = await checkGrants(run);
  printResult(rows, totals);
  process.exitCode = totals.lost + totals.doubled + totals.refused + totals.repeated + totals.deadLetters > 0 ? 1 : 0;
}

export const formatTotals = ({ grants, lost, doubled, refused, repeated, deadLetters }: Totals): string =>
  `${grants} grants: ${lost} lost, ${doubled} doubled, ${refused} refused, ${repeated} repeated, ${deadLetters} dead letters`;
