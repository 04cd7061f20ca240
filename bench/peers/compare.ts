/** The comparisons: the contenders of each, and what one round does. */
import { clearProgress, showProgress } from "../measure.ts";
import { emptyRedis } from "./bullmq.ts";
import { runRole, startRole } from "./child.ts";
import { type ContenderName, contenderNames, getContender } from "./contenders.ts";
import { defaultPool } from "./database.ts";
import { machineMs, type Recovery, type RoundSetup } from "./peer.ts";
import {
  type Comparison,
  type Engines,
  jobsFor,
  measureRounds,
  type Round,
  type RoundResult,
  type Size,
  threeDigits,
  toFigure,
  withNewDatabase,
} from "./rounds.ts";
import type { StartedJob } from "./waiting.ts";

const postgresContenders = contenderNames.filter((name) => !getContender(name).outsidePostgres);
const withNotify: readonly ContenderName[] = contenderNames.filter((name) => name !== "pg-boss, notify off");

export async function compareEnqueue(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Enqueue in the caller's transaction";
  return {
    key: "enqueue",
    title: `${title}, 16 callers`,
    unit: "transactions per second",
    better: "more",
    figures: await measureRounds(
      engines,
      { title, contenders: postgresContenders, rounds: size.rounds },
      async (contender, setup) => ({
        value: Number(
          await runRole({ contender, role: "enqueue", setup, options: { callers: 16, ms: size.enqueueMs } }),
        ),
      }),
    ),
    absent: { BullMQ: "not possible: its jobs are in Redis" },
  };
}

export async function compareDrain(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Drain";
  const figures = await measureRounds(
    engines,
    { title, contenders: withNotify, rounds: size.rounds },
    async (contender, setup) => {
      await emptyRedis(setup.redisUrl);
      const jobs = jobsFor(contender, size.drainJobs);
      const options = { jobs, drainMsMax: size.drainMsMax };
      const value = Number(await runRole({ contender, role: "drain", setup, options }));
      return jobs === size.drainJobs ? { value } : { value, note: `of ${jobs.toLocaleString("en")} jobs` };
    },
  );
  const jobs = size.drainJobs.toLocaleString("en");
  return {
    key: "drain",
    title: `Drain of ${jobs} no-op jobs`,
    unit: "jobs per second",
    better: "more",
    figures,
    absent: {},
  };
}

/** The figure is p50; the note has p99 of the last round. */
const percentiles = (ages: readonly number[]): RoundResult => {
  const sorted = [...ages].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { value: at(0.5), note: `p99 ${threeDigits(at(0.99))} ms` };
};

/** Sends from one process to another; returns the started jobs and when each was stored. */
async function sendAndReceive(contender: ContenderName, setup: RoundSetup, sender: Sender) {
  const options = { jobs: sender.options.jobs };
  await using receiver = startRole({ contender, role: "receive", setup, options });
  await receiver.message("ready");
  const storedAt = await runRole({ contender, role: sender.role, setup, options: sender.options });
  return { started: (await receiver.message("result")) as StartedJob[], storedAt: (storedAt ?? []) as number[] };
}

const delaysFromSend = (started: readonly StartedJob[]): RoundResult =>
  percentiles(started.map(({ sentAt, startedAt }) => startedAt - sentAt));

/** A job that started before its enqueue returned has a delay of 0. */
const delaysFromStored = (started: readonly StartedJob[], storedAt: readonly number[]): RoundResult =>
  percentiles(started.map(({ n, startedAt }) => Math.max(0, startedAt - (storedAt[n] ?? Number.NaN))));

interface Sender {
  readonly role: "sendWhenIdle" | "sendAtRate";
  readonly options: { readonly jobs: number; readonly [more: string]: number };
}

export async function comparePickUp(engines: Engines, size: Size): Promise<Comparison[]> {
  const idle = { jobs: size.idleJobs, pauseMs: 20 };
  const underLoad = { jobs: size.rateSeconds * 1_000, perSecond: 1_000 };
  const compare = async (
    key: string,
    title: string,
    round: Round,
    { since = "the enqueue call", whyBehind = diskTwice }: { since?: string; whyBehind?: string } = {},
  ): Promise<Comparison> => ({
    key,
    title,
    unit: `ms from ${since} to the start of the handler, p50`,
    better: "less",
    figures: await measureRounds(engines, { title, contenders: withNotify, rounds: size.rounds }, round),
    whyBehind,
    absent: {},
  });
  return [
    await compare("pick-up-idle", "Pick-up when idle, by another process", async (contender, setup) =>
      delaysFromSend((await sendAndReceive(contender, setup, { role: "sendWhenIdle", options: idle })).started),
    ),
    await compare(
      "pick-up-from-commit",
      "Pick-up when idle, from the commit, by another process",
      async (contender, setup) => {
        const { started, storedAt } = await sendAndReceive(contender, setup, { role: "sendWhenIdle", options: idle });
        return delaysFromStored(started, storedAt);
      },
      { since: "the return of the enqueue", whyBehind: `${wakeAfterCommit} ${diskTwice}` },
    ),
    await compare("pick-up-in-process", "Pick-up when idle, by the enqueuing process", async (contender, setup) =>
      delaysFromSend((await runRole({ contender, role: "pickUpInProcess", setup, options: idle })) as StartedJob[]),
    ),
    await compare(
      "pick-up-under-load",
      "Pick-up at 1,000 jobs per second, by another process",
      async (contender, setup) =>
        delaysFromSend((await sendAndReceive(contender, setup, { role: "sendAtRate", options: underLoad })).started),
      { whyBehind: `${oneClaimAtATime} ${diskTwice}` },
    ),
  ];
}

const diskTwice =
  "A job in Todoke waits for the disk twice, when it is stored and when it is claimed, by design " +
  "([ADR 17](../adr/0017-a-claim-is-on-disk-first.md)).";
const wakeAfterCommit = "Other processes are woken after the commit, not by it ([ADR 5](../adr/0005-wake-ups.md)).";
const oneClaimAtATime =
  "A Todoke worker makes one claim at a time: jobs that arrive during a claim wait for the next one.";

const heldJobCount = 10;

/** All contenders run at the same time: leases decide the figure, not CPU. */
export async function compareRecovery(engines: Engines, size: Size): Promise<Comparison> {
  const kinds = withNotify.flatMap((name) =>
    (["default", "short"] as const).flatMap((recovery) => {
      const note = getContender(name).recovery[recovery];
      return note === undefined ? [] : [{ name, recovery, note }];
    }),
  );
  const results = kinds.map((): RoundResult[] => []);
  for (let n = 1; n <= size.rounds; n++) {
    showProgress(`recovery: all at once, round ${n} of ${size.rounds}`);
    const seconds = await Promise.all(kinds.map((kind) => measureRecovery(engines, kind)));
    for (const [index, value] of seconds.entries()) results[index]?.push({ value, note: kinds[index]?.note ?? "" });
  }
  clearProgress();
  return {
    key: "recovery",
    title: "Recovery after kill -9 of a worker",
    unit: "seconds until another process has all its jobs",
    better: "less",
    figures: kinds.map(({ name, recovery }, index) => toFigure(`${name}, ${recovery}`, results[index] ?? [])),
    absent: Object.fromEntries(
      contenderNames.flatMap((name) => {
        const never = getContender(name).recovery.never;
        return never === undefined ? [] : [[name, never]];
      }),
    ),
  };
}

function measureRecovery(
  engines: Engines,
  { name, recovery }: { name: ContenderName; recovery: Recovery },
): Promise<number> {
  return withNewDatabase(engines, async (fresh) => {
    const setup = { ...fresh, recovery };
    const options = { jobs: heldJobCount };
    await using holdingWorker = startRole({ contender: name, role: "holdJobs", setup, options });
    await holdingWorker.message("holding");
    await using recoveringWorker = startRole({ contender: name, role: "recoverJobs", setup, options });
    await recoveringWorker.message("ready");
    const killedAt = machineMs();
    await holdingWorker.kill();
    return (Number(await recoveringWorker.message("result")) - killedAt) / 1_000;
  });
}

/** An open snapshot keeps vacuum from removing dead rows, so tables and indexes grow. */
export async function compareOpenTransaction(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Throughput while a transaction stays open";
  const contenders = postgresContenders.filter((name) => withNotify.includes(name));
  const figures = await measureRounds(
    engines,
    { title, contenders, rounds: size.longRounds },
    async (contender, setup) => {
      const options = { ms: size.openMs, burst: jobsFor(contender, 10_000) };
      await using child = startRole({ contender, role: "churn", setup, options });
      await child.message("ready");
      const db = defaultPool(setup.postgresUrl, 1);
      const snapshot = await db.connect();
      await snapshot.query("begin isolation level repeatable read");
      await snapshot.query("select pg_current_xact_id()");
      const { all, first, last } = (await child.message("result")) as Record<"all" | "first" | "last", number>;
      await snapshot.query("rollback");
      snapshot.release();
      await db.end();
      return { value: all, note: `first fifth ${threeDigits(first)}, last fifth ${threeDigits(last)}` };
    },
  );
  return {
    key: "open-transaction",
    title: `${title} for ${size.openMs / 1_000} seconds`,
    unit: "jobs per second, filled and drained in bursts",
    better: "more",
    figures,
    absent: { BullMQ: "not in PostgreSQL" },
  };
}

export async function compareGrowth(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Growth";
  const figures = await measureRounds(
    engines,
    { title, contenders: withNotify, rounds: size.longRounds },
    async (contender, setup) => {
      await emptyRedis(setup.redisUrl);
      const jobs = jobsFor(contender, size.growJobs);
      const options = { jobs, burst: Math.min(50_000, jobs), vacuumMsMax: size.vacuumMsMax };
      const value = Number(await runRole({ contender, role: "measureGrowth", setup, options }));
      return jobs === size.growJobs ? { value } : { value, note: `of ${jobs.toLocaleString("en")} jobs` };
    },
  );
  return {
    key: "growth",
    title: `Space per finished job, after ${size.growJobs.toLocaleString("en")} jobs and autovacuum`,
    unit: "bytes of tables and indexes per job (BullMQ: Redis memory)",
    better: "less",
    figures,
    absent: {},
  };
}
