/**
 * What a contender's process is told to do. Each role is one process with one contender in it, so that nobody pays for
 * another's heap; what it measures it measures by itself, and answers in one message.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { transaction } from "@todoke/kernel/db";
import { plainPool } from "./database.ts";
import type { Peer, Site } from "./peer.ts";
import { option, type Role } from "./role.ts";
import { hold, pickUpHere, receive, rescue, sendAtPace, sendAtRest } from "./waiting.ts";

/** Begin, a row of the caller's own, the job, commit. Jobs per second. */
const enqueue: Role = async ({ peer, site, options }) => {
  const db = plainPool(site.postgresUrl, option(options, "callers"));
  await db.query("create table orders (order_id bigint generated always as identity primary key, note text not null)");
  const insert = { name: "order", text: "insert into orders (note) values ($1)", values: ["a present"] };
  let ended = 0;
  const caller = async (until: number) => {
    while (performance.now() < until) {
      await transaction(db, async (tx) => {
        await tx.query(insert);
        await peer.enqueue?.(tx, { n: ended, sentAt: 0 });
      });
      ended++;
    }
  };
  const crowd = async (ms: number) => {
    ended = 0;
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: option(options, "callers") }, () => caller(startedAt + ms)));
    return (ended / (performance.now() - startedAt)) * 1_000;
  };
  await crowd(500); // Connections are open and statements prepared after this.
  const perSecond = await crowd(option(options, "ms"));
  await db.end();
  return perSecond;
};

/** From the first job's start until all are settled, or time is up. Jobs per second. */
const drain: Role = async ({ peer, site, options }) => {
  const jobs = option(options, "jobs");
  await peer.fill(jobs);
  await vacuum(site);
  let handled = 0;
  let firstAt = 0;
  const all = Promise.withResolvers<void>();
  await using _worker = await peer.work(() => {
    if (handled === 0) firstAt = performance.now();
    if (++handled === jobs) all.resolve();
  });
  const timeIsUp = sleep(option(options, "atMostMs"), "time is up", { ref: false });
  if ((await Promise.race([all.promise, timeIsUp])) !== "time is up") {
    while ((await peer.left()) > 0) await sleep(2);
  }
  if (handled === 0) throw new Error("not one job was begun");
  return (handled / (performance.now() - firstAt)) * 1_000;
};

/** The numbers of the jobs as they were begun, when all are settled: that each was begun, and once, is for tests to see. */
const tally: Role = async ({ peer, options }) => {
  const begun: number[] = [];
  await peer.fill(option(options, "jobs"));
  const found = await peer.left();
  await using _worker = await peer.work(({ n }) => void begun.push(n));
  while (begun.length < option(options, "jobs") || (await peer.left()) > 0) await sleep(5);
  return { found, begun };
};

/** Statistics are fresh for everybody, as they would be after a day. */
async function vacuum({ postgresUrl }: Site): Promise<void> {
  const db = plainPool(postgresUrl, 1);
  await db.query("vacuum analyze");
  await db.end();
}

/** Fills and drains in bursts, one after the other. Jobs per second: over all, in the first and in the last fifth. */
const churn: Role = async ({ peer, options, say }) => {
  const burst = option(options, "burst");
  const lengthMs = option(options, "ms");
  await using drained = await drainInBursts(peer);
  await drained.burst(Math.min(burst, 1_000)); // What is lazy is set up now.
  say("ready");
  const startedAt = performance.now();
  const fifths = [0, 0, 0, 0, 0];
  drained.onHandled = () => {
    const fifth = Math.floor(((performance.now() - startedAt) / lengthMs) * 5);
    if (fifth < 5) fifths[fifth] = (fifths[fifth] ?? 0) + 1;
  };
  while (performance.now() - startedAt < lengthMs) await drained.burst(burst);
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

/** Works off a great many jobs, lets the server clean up by itself, and says how many bytes are left of each. */
const grow: Role = async ({ peer, site, options }) => {
  const jobs = option(options, "jobs");
  const before = await peer.bytes();
  await using drained = await drainInBursts(peer);
  for (let gone = 0; gone < jobs; gone += option(options, "burst")) await drained.burst(option(options, "burst"));
  while ((await peer.left()) > 0) await sleep(20);
  await autovacuumed(site, option(options, "vacuumWithinMs"));
  return ((await peer.bytes()) - before) / jobs;
};

async function drainInBursts(peer: Peer) {
  let handled = 0;
  let wanted = 0;
  let reached = () => {};
  const worker = await peer.work(() => {
    handled++;
    drained.onHandled();
    if (handled >= wanted) reached();
  });
  const drained = {
    onHandled: () => {},
    async burst(jobs: number): Promise<void> {
      wanted += jobs;
      const all = new Promise<void>((resolve) => {
        reached = resolve;
      });
      await peer.fill(jobs);
      if (handled < wanted) await all;
    },
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
  return drained;
}

/** Until autovacuum has been at every table that needs it, or time is up: then what is left is what one would see. */
async function autovacuumed({ postgresUrl }: Site, withinMs: number): Promise<void> {
  const db = plainPool(postgresUrl, 1);
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
  tally,
  receive,
  sendAtRest,
  sendAtPace,
  pickUpHere,
  hold,
  rescue,
  churn,
  grow,
} as const satisfies Readonly<Record<string, Role>>;

export type RoleName = keyof typeof roles;
