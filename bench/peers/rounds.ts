/** How the comparisons are taken: each contender in turn, each round on a database of its own, medians of the rounds. */
import { median } from "../measure.ts";
import { type ContenderName, contenderOf } from "./contenders.ts";
import { peerDatabase } from "./database.ts";
import type { Site } from "./peer.ts";

export interface PeerFigure {
  readonly name: string;
  readonly median: number;
  readonly rounds: readonly number[];
  readonly note?: string;
}

export interface Comparison {
  /** Also the name of its chart's file. */
  readonly key: string;
  /** The day on which it was measured; its contenders are always of one run. */
  readonly on?: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  readonly figures: readonly PeerFigure[];
  /** Why we do not get ahead, said where a peer is. */
  readonly whenBehind?: string;
  /** Who is not in it, and why. */
  readonly absent: Readonly<Record<string, string>>;
}

/** How much of everything; `npm run bench -- peers-quick` is for trying out. */
export interface Size {
  readonly rounds: number;
  /** The long ones (an open transaction, a million jobs) are averages of minutes already. */
  readonly longRounds: number;
  readonly enqueueMs: number;
  readonly drainJobs: number;
  readonly drainAtMostMs: number;
  readonly restJobs: number;
  readonly paceSeconds: number;
  readonly openMs: number;
  readonly growJobs: number;
  readonly vacuumWithinMs: number;
}

export const fullSize: Size = {
  rounds: 3,
  longRounds: 1,
  enqueueMs: 5_000,
  drainJobs: 100_000,
  drainAtMostMs: 30_000,
  restJobs: 300,
  paceSeconds: 10,
  openMs: 120_000,
  growJobs: 1_000_000,
  vacuumWithinMs: 150_000,
};

export const quickSize: Size = {
  rounds: 1,
  longRounds: 1,
  enqueueMs: 1_500,
  drainJobs: 20_000,
  drainAtMostMs: 5_000,
  restJobs: 60,
  paceSeconds: 3,
  openMs: 5_000,
  growJobs: 20_000,
  vacuumWithinMs: 0,
};

export interface Engines {
  readonly postgresUrl: string;
  readonly redisUrl: string;
}

export type Measured = { readonly value: number; readonly note?: string };
export type Round = (name: ContenderName, site: Site) => Promise<Measured>;

/** One slow enough to say so gets a twentieth of the jobs: what it does per job does not change with that. */
const slowShare = 20;
export const jobsFor = (name: ContenderName, jobs: number) =>
  contenderOf(name).slow ? Math.max(1_000, jobs / slowShare) : jobs;

export async function byTurns(
  engines: Engines,
  { title, taking, rounds }: { title: string; taking: readonly ContenderName[]; rounds: number },
  round: Round,
): Promise<PeerFigure[]> {
  const taken = new Map<ContenderName, Measured[]>(taking.map((name) => [name, []]));
  for (let n = 1; n <= rounds; n++) {
    for (const name of taking) {
      process.stderr.write(`  ${title}: ${name}, round ${n} of ${rounds} …`.padEnd(100).concat("\r"));
      taken.get(name)?.push(await onNewDatabase(engines, (site) => round(name, site)));
    }
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  return taking.map((name) => figureOf(name, taken.get(name) ?? []));
}

export async function onNewDatabase<T>(
  { postgresUrl, redisUrl }: Engines,
  work: (site: Site) => Promise<T>,
): Promise<T> {
  await using database = await peerDatabase(postgresUrl);
  return await work({ postgresUrl: database.url, redisUrl });
}

export function figureOf(name: string, all: readonly Measured[]): PeerFigure {
  const rounds = all.map(({ value }) => readable(value));
  const note = all.at(-1)?.note;
  return { name, median: median(rounds), rounds, ...(note !== undefined && { note }) };
}

/** Three digits that mean something; more would be noise. */
export const readable = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
