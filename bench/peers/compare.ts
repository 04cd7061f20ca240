/** The comparisons, each with who takes part in it and what a round is. */
import { emptyRedis } from "./bullmq.ts";
import { play, start } from "./child.ts";
import { type ContenderName, contenderOf, names } from "./contenders.ts";
import { plainPool } from "./database.ts";
import { machineMs, type Recovery, type Site } from "./peer.ts";
import {
  byTurns,
  type Comparison,
  type Engines,
  figureOf,
  jobsFor,
  type Measured,
  onNewDatabase,
  type Round,
  readable,
  type Size,
} from "./rounds.ts";
import type { Begun } from "./waiting.ts";

const inPostgres = names.filter((name) => !contenderOf(name).elsewhere);
const withNotify: readonly ContenderName[] = names.filter((name) => name !== "pg-boss, notify off");

export async function enqueues(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Enqueue in the caller's transaction";
  return {
    key: "enqueue",
    title: `${title}, 16 callers`,
    unit: "transactions per second",
    better: "more",
    figures: await byTurns(engines, { title, taking: inPostgres, rounds: size.rounds }, async (contender, site) => ({
      value: Number(await play({ contender, role: "enqueue", site, options: { callers: 16, ms: size.enqueueMs } })),
    })),
    absent: { BullMQ: "it cannot: its jobs are in Redis" },
  };
}

export async function drains(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Drain";
  const figures = await byTurns(
    engines,
    { title, taking: withNotify, rounds: size.rounds },
    async (contender, site) => {
      await emptyRedis(site.redisUrl);
      const jobs = jobsFor(contender, size.drainJobs);
      const options = { jobs, atMostMs: size.drainAtMostMs };
      const value = Number(await play({ contender, role: "drain", site, options }));
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

/** p50 as the figure; p99 of the last round in the note. */
const percentiles = (ages: readonly number[]): Measured => {
  const sorted = [...ages].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { value: at(0.5), note: `p99 ${readable(at(0.99))} ms` };
};

/** What another process began, and when each was stored, where the sender says so. */
async function sent(contender: ContenderName, site: Site, sender: Sender) {
  const options = { jobs: sender.options.jobs };
  await using receiver = start({ contender, role: "receive", site, options });
  await receiver.said("ready");
  const storedAt = await play({ contender, role: sender.role, site, options: sender.options });
  return { begun: (await receiver.said("answer")) as Begun[], storedAt: (storedAt ?? []) as number[] };
}

const fromBefore = (begun: readonly Begun[]): Measured =>
  percentiles(begun.map(({ sentAt, begunAt }) => begunAt - sentAt));

/** One that was begun before its sender heard that it is stored has waited for nothing. */
const fromStored = (begun: readonly Begun[], storedAt: readonly number[]): Measured =>
  percentiles(begun.map(({ n, begunAt }) => Math.max(0, begunAt - (storedAt[n] ?? Number.NaN))));

interface Sender {
  readonly role: "sendAtRest" | "sendAtPace";
  readonly options: { readonly jobs: number; readonly [more: string]: number };
}

export async function pickUps(engines: Engines, size: Size): Promise<Comparison[]> {
  const atRest = { jobs: size.restJobs, pauseMs: 20 };
  const atPace = { jobs: size.paceSeconds * 1_000, perSecond: 1_000 };
  const compare = async (
    key: string,
    title: string,
    round: Round,
    { since = "before the enqueue", whenBehind = twiceToDisk }: { since?: string; whenBehind?: string } = {},
  ): Promise<Comparison> => ({
    key,
    title,
    unit: `ms from ${since} to the handler's start, p50`,
    better: "less",
    figures: await byTurns(engines, { title, taking: withNotify, rounds: size.rounds }, round),
    whenBehind,
    absent: {},
  });
  return [
    await compare("pick-up-at-rest", "Pick-up at rest, by another process", async (contender, site) =>
      fromBefore((await sent(contender, site, { role: "sendAtRest", options: atRest })).begun),
    ),
    await compare(
      "pick-up-from-commit",
      "Pick-up at rest, from the commit, by another process",
      async (contender, site) => {
        const { begun, storedAt } = await sent(contender, site, { role: "sendAtRest", options: atRest });
        return fromStored(begun, storedAt);
      },
      { since: "the enqueue being answered", whenBehind: `${toldAfter} ${twiceToDisk}` },
    ),
    await compare("pick-up-here", "Pick-up at rest, by the process that enqueues", async (contender, site) =>
      fromBefore((await play({ contender, role: "pickUpHere", site, options: atRest })) as Begun[]),
    ),
    await compare(
      "pick-up-at-pace",
      "Pick-up at 1,000 jobs per second, by another process",
      async (contender, site) =>
        fromBefore((await sent(contender, site, { role: "sendAtPace", options: atPace })).begun),
      { whenBehind: `${oneAfterTheOther} ${twiceToDisk}` },
    ),
  ];
}

const twiceToDisk =
  "A job of ours waits for the disk twice, when it is stored and when it is claimed, and we keep it so " +
  "([ADR 17](../adr/0017-a-claim-is-on-disk-first.md)).";
const toldAfter = "Other processes are told after the commit, not by it ([ADR 5](../adr/0005-wake-ups.md)).";
const oneAfterTheOther =
  "A worker of ours claims for all its jobs, one claim after the other: what comes while one is under way waits for the next.";

const heldJobs = 10;

/** All wait at the same time: it is a matter of leases, and not of the processor. */
export async function recoveries(engines: Engines, size: Size): Promise<Comparison> {
  const kinds = withNotify.flatMap((name) =>
    (["default", "short"] as const).flatMap((recovery) => {
      const how = contenderOf(name).recovery[recovery];
      return how === undefined ? [] : [{ name, recovery, how }];
    }),
  );
  const taken = kinds.map((): Measured[] => []);
  for (let n = 1; n <= size.rounds; n++) {
    process.stderr.write(`  recovery: all at once, round ${n} of ${size.rounds} …`.padEnd(100).concat("\r"));
    const seconds = await Promise.all(kinds.map((kind) => recoveryOf(engines, kind)));
    for (const [place, value] of seconds.entries()) taken[place]?.push({ value, note: kinds[place]?.how ?? "" });
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  return {
    key: "recovery",
    title: "Recovery after kill -9 of a worker",
    unit: "seconds until another process has all the jobs it held",
    better: "less",
    figures: kinds.map(({ name, recovery }, place) => figureOf(`${name}, ${recovery}`, taken[place] ?? [])),
    absent: Object.fromEntries(
      names.flatMap((name) => {
        const never = contenderOf(name).recovery.never;
        return never === undefined ? [] : [[name, never]];
      }),
    ),
  };
}

function recoveryOf(
  engines: Engines,
  { name, recovery }: { name: ContenderName; recovery: Recovery },
): Promise<number> {
  return onNewDatabase(engines, async (fresh) => {
    const site = { ...fresh, recovery };
    const options = { jobs: heldJobs };
    await using holder = start({ contender: name, role: "hold", site, options });
    await holder.said("holding");
    await using rescuer = start({ contender: name, role: "rescue", site, options });
    await rescuer.said("ready");
    const killedAt = machineMs();
    await holder.kill();
    return (Number(await rescuer.said("answer")) - killedAt) / 1_000;
  });
}

/** A snapshot that stays: nothing that died after it can be cleaned away, so tables and indexes fill with the dead. */
export async function throughputsWithOpenTransaction(engines: Engines, size: Size): Promise<Comparison> {
  const title = "While a transaction stays open";
  const taking = inPostgres.filter((name) => withNotify.includes(name));
  const figures = await byTurns(engines, { title, taking, rounds: size.longRounds }, async (contender, site) => {
    const options = { ms: size.openMs, burst: jobsFor(contender, 10_000) };
    await using child = start({ contender, role: "churn", site, options });
    await child.said("ready");
    const db = plainPool(site.postgresUrl, 1);
    const old = await db.connect();
    await old.query("begin isolation level repeatable read");
    await old.query("select pg_current_xact_id()");
    const { all, first, last } = (await child.said("answer")) as Record<"all" | "first" | "last", number>;
    await old.query("rollback");
    old.release();
    await db.end();
    return { value: all, note: `first fifth ${readable(first)}, last fifth ${readable(last)}` };
  });
  return {
    key: "open-transaction",
    title: `${title} for ${size.openMs / 1_000} seconds`,
    unit: "jobs per second, filled and drained in bursts",
    better: "more",
    figures,
    absent: { BullMQ: "not in PostgreSQL" },
  };
}

export async function growths(engines: Engines, size: Size): Promise<Comparison> {
  const title = "Growth";
  const figures = await byTurns(
    engines,
    { title, taking: withNotify, rounds: size.longRounds },
    async (contender, site) => {
      await emptyRedis(site.redisUrl);
      const jobs = jobsFor(contender, size.growJobs);
      const options = { jobs, burst: Math.min(50_000, jobs), vacuumWithinMs: size.vacuumWithinMs };
      const value = Number(await play({ contender, role: "grow", site, options }));
      return jobs === size.growJobs ? { value } : { value, note: `of ${jobs.toLocaleString("en")} jobs` };
    },
  );
  return {
    key: "growth",
    title: `Left of each of ${size.growJobs.toLocaleString("en")} finished jobs, after autovacuum`,
    unit: "bytes of table and index per job (BullMQ: of Redis' memory)",
    better: "less",
    figures,
    absent: {},
  };
}
