/** Measures contenders in turn, each round on a new database, and reports medians. */
import { clearProgress, median, showProgress } from "../measure.ts";
import { type ContenderName, getContender } from "./contenders.ts";
import { peerDatabase } from "./database.ts";
import type { RoundSetup } from "./peer.ts";

export interface PeerFigure {
  readonly name: string;
  readonly median: number;
  readonly rounds: readonly number[];
  readonly note?: string;
}

export interface Comparison {
  /** Also the name of its chart's file. */
  readonly key: string;
  /** The day of the measurement; all contenders are of one run. */
  readonly date?: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  readonly figures: readonly PeerFigure[];
  /** Explains on the page why a peer is ahead of us. */
  readonly whyBehind?: string;
  /** Contenders that are not compared, with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

/** The size of a run; `npm run bench -- peers-quick` makes a short trial. */
export interface Size {
  readonly rounds: number;
  /** Rounds of the comparisons that take minutes each. */
  readonly longRounds: number;
  readonly enqueueMs: number;
  readonly drainJobs: number;
  readonly drainMsMax: number;
  readonly idleJobs: number;
  readonly rateSeconds: number;
  readonly openMs: number;
  readonly growJobs: number;
  readonly vacuumMsMax: number;
}

export const fullSize: Size = {
  rounds: 3,
  longRounds: 1,
  enqueueMs: 5_000,
  drainJobs: 100_000,
  drainMsMax: 30_000,
  idleJobs: 300,
  rateSeconds: 10,
  openMs: 120_000,
  growJobs: 1_000_000,
  vacuumMsMax: 150_000,
};

export const quickSize: Size = {
  rounds: 1,
  longRounds: 1,
  enqueueMs: 1_500,
  drainJobs: 20_000,
  drainMsMax: 5_000,
  idleJobs: 60,
  rateSeconds: 3,
  openMs: 5_000,
  growJobs: 20_000,
  vacuumMsMax: 0,
};

export interface Engines {
  readonly postgresUrl: string;
  readonly redisUrl: string;
}

export type RoundResult = { readonly value: number; readonly note?: string };
export type Round = (name: ContenderName, setup: RoundSetup) => Promise<RoundResult>;

/** A slow contender gets a twentieth of the jobs; its rate does not depend on their number. */
const slowShare = 20;
export const jobsFor = (name: ContenderName, jobs: number) =>
  getContender(name).slow ? Math.max(1_000, jobs / slowShare) : jobs;

export async function measureRounds(
  engines: Engines,
  { title, contenders, rounds }: { title: string; contenders: readonly ContenderName[]; rounds: number },
  round: Round,
): Promise<PeerFigure[]> {
  const results = new Map<ContenderName, RoundResult[]>(contenders.map((name) => [name, []]));
  for (let n = 1; n <= rounds; n++) {
    for (const name of contenders) {
      showProgress(`${title}: ${name}, round ${n} of ${rounds}`);
      results.get(name)?.push(await withNewDatabase(engines, (setup) => round(name, setup)));
    }
  }
  clearProgress();
  return contenders.map((name) => toFigure(name, results.get(name) ?? []));
}

export async function withNewDatabase<T>(
  { postgresUrl, redisUrl }: Engines,
  work: (setup: RoundSetup) => Promise<T>,
): Promise<T> {
  await using database = await peerDatabase(postgresUrl);
  return await work({ postgresUrl: database.url, redisUrl });
}

export function toFigure(name: string, all: readonly RoundResult[]): PeerFigure {
  const rounds = all.map(({ value }) => threeDigits(value));
  const note = all.at(-1)?.note;
  return { name, median: median(rounds), rounds, ...(note !== undefined && { note }) };
}

/** More than three significant digits would be noise. */
export const threeDigits = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
