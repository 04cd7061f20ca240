/** The roles of a contender's process. One process runs one role, so that no contender pays for the heap of another. */
import { setTimeout as sleep } from "node:timers/promises";
import { transaction } from "@todoke/kernel/db";
import { defaultPool } from "./database.ts";
import type { Peer, RoundSetup } from "./peer.ts";
import { option, type Role } from "./role.ts";
import { holdJobs, pickUpInProcess, receive, recoverJobs, sendAtRate, sendWhenIdle } from "./waiting.ts";

/** Transactions of a row of the caller and a job. Returns jobs per second. */
const enqueue: Role = async ({ peer, setup, options }) => {
  const db = defaultPool(setup.postgresUrl, option(options, "callers"));
  await db.query("create table orders (order_id bigint generated always as identity primary key, note text not null)");
  const insert = { name: "order", text: "insert into orders (note) values ($1)", values: ["a present"] };
  let enqueued = 0;
  const caller = async (until: number) => {
    while (performance.now() < until) {
      await transaction(db, async (tx) => {
        await tx.query(insert);
        await peer.enqueue?.(tx, { n: enqueued, sentAt: 0 });
      });
      enqueued++;
    }
  };
  const runCallers = async (ms: number) => {
    enqueued = 0;
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: option(options, "callers") }, () => caller(startedAt + ms)));
    return (enqueued / (performance.now() - startedAt)) * 1_000;
  };
  await runCallers(500); // Warm-up: opens connections and prepares statements.
  const perSecond = await runCallers(option(options, "ms"));
  await db.end();
  return perSecond;
};

/** From the start of the first job until all are settled, or for `drainMsMax`. Returns jobs per second. */
const drain: Role = async ({ peer, setup, options }) => {
  const jobs = option(options, "jobs");
  await peer.fill(jobs);
  await vacuum(setup);
  let handled = 0;
  let firstAt = 0;
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(() => {
    if (handled === 0) firstAt = performance.now();
    if (++handled === jobs) all.resolve();
  });
  const timeout = sleep(option(options, "drainMsMax"), "timeout", { ref: false });
  if ((await Promise.race([all.promise, timeout])) !== "timeout") {
    while ((await peer.countUnfinished()) > 0) await sleep(2);
  }
  if (handled === 0) throw new Error("no job was started");
  return (handled / (performance.now() - firstAt)) * 1_000;
};

/** Returns the numbers of the started jobs when all are settled; tests compare them. */
const listStarted: Role = async ({ peer, options }) => {
  const started: number[] = [];
  await peer.fill(option(options, "jobs"));
  const found = await peer.countUnfinished();
  await using _worker = await peer.work(({ n }) => void started.push(n));
  while (started.length < option(options, "jobs") || (await peer.countUnfinished()) > 0) await sleep(5);
  return { found, started };
};

/** Gives every contender fresh statistics. */
async function vacuum({ postgresUrl }: RoundSetup): Promise<void> {
  const db = defaultPool(postgresUrl, 1);
  await db.query("vacuum analyze");
  await db.end();
}

/** Fills and drains in bursts. Returns jobs per second: in total, in the first fifth and in the last fifth. */
const churn: Role = async ({ peer, options, report }) => {
  const burst = option(options, "burst");
  const lengthMs = option(options, "ms");
  await using bursts = await openBurstDrain(peer);
  await bursts.run(Math.min(burst, 1_000)); // Warm-up: lazy set-up happens here.
  report("ready");
  const startedAt = performance.now();
  const fifths = [0, 0, 0, 0, 0];
  bursts.onHandled = () => {
    const fifth = Math.floor(((performance.now() - startedAt) / lengthMs) * 5);
    if (fifth < 5) fifths[fifth] = (fifths[fifth] ?? 0) + 1;
  };
  while (performance.now() - startedAt < lengthMs) await bursts.run(burst);
  const perSecond = (jobs: number, share: number) => (jobs / (lengthMs * share)) * 1_000;
  return {
    all: perSecond(
      fifths.reduce((sum, jobs) => sum + jobs, 0),
      1,
    ),
    first: perSecond(fifths[0] ?? 0, 0.2),
    last: perSecond(fifths[4] ?? 0, 0.2),
  };
};

/** Runs many jobs, waits for autovacuum, and returns the bytes left per job. */
const measureGrowth: Role = async ({ peer, setup, options }) => {
  const jobs = option(options, "jobs");
  const before = await peer.bytes();
  await using bursts = await openBurstDrain(peer);
  for (let done = 0; done < jobs; done += option(options, "burst")) await bursts.run(option(options, "burst"));
  while ((await peer.countUnfinished()) > 0) await sleep(20);
  await waitForAutovacuum(setup, option(options, "vacuumMsMax"));
  return ((await peer.bytes()) - before) / jobs;
};

async function openBurstDrain(peer: Peer) {
  let handled = 0;
  let wanted = 0;
  let reached = () => {};
  const worker = await peer.work(() => {
    handled++;
    bursts.onHandled();
    if (handled >= wanted) reached();
  });
  const bursts = {
    onHandled: () => {},
    async run(jobs: number): Promise<void> {
      wanted += jobs;
      const all = new Promise<void>((resolve) => {
        reached = resolve;
      });
      await peer.fill(jobs);
      if (handled < wanted) await all;
    },
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
  return bursts;
}

/** Waits until autovacuum has processed every table that needs it, at most `withinMs`. */
async function waitForAutovacuum({ postgresUrl }: RoundSetup, withinMs: number): Promise<void> {
  const db = defaultPool(postgresUrl, 1);
  const until = performance.now() + withinMs;
  const { rows } = await db.query("select clock_timestamp() as now");
  const due = async () => {
    const found = await db.query(
      `select from pg_stat_user_tables
        where n_dead_tup > 10000 and coalesce(last_autovacuum, '-infinity') < $1 limit 1`,
      [rows[0].now],
    );
    return found.rowCount === 1;
  };
  while (performance.now() < until && (await due())) await sleep(1_000);
  await db.end();
}

export const roles = {
  enqueue,
  drain,
  listStarted,
  receive,
  sendWhenIdle,
  sendAtRate,
  pickUpInProcess,
  holdJobs,
  recoverJobs,
  churn,
  measureGrowth,
} as const satisfies Readonly<Record<string, Role>>;

export type RoleName = keyof typeof roles;
