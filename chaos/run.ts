/** One run: environment, load, faults, quiet, check. All evidence is in its folder, so that it can be checked again. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { audit } from "./auditor.ts";
import { auditedSubjects } from "./bus.ts";
import { check } from "./check.ts";
import type { Counts } from "./client.ts";
import { startClients } from "./clients.ts";
import { schemaOf } from "./databases.ts";
import {
  type Evidence,
  type Facts,
  type FaultRecord,
  files,
  readEvidence,
  saveAudited,
  saveFacts,
  saveOrderBroker,
  saveTables,
} from "./evidence.ts";
import type { Step } from "./faults/fault.ts";
import { createHarness, type Harness } from "./harness.ts";
import { type Line, openLines } from "./history.ts";
import type { Violation } from "./invariants.ts";
import { runNemesis } from "./nemesis.ts";
import { makeSchedule } from "./schedule.ts";
import { type BusKind, leaseMs, quietMs } from "./settings.ts";

export interface RunOptions {
  readonly seed: string;
  readonly bus: BusKind;
  readonly forMs: number;
  /** The load continues after `forMs` until this many commands are answered. */
  readonly answeredMin?: number;
  /** Commands per second. */
  readonly rate: number;
  readonly faultsPerMinute: number;
  readonly folder: string;
  /** Replaces the schedule of the seed. */
  readonly schedule?: readonly Step[];
  /** Names of the services to run. Default: all. */
  readonly services?: readonly string[] | undefined;
  /** A planted defect. */
  readonly planted?: string;
  /** Limit for becoming quiet, if not the default. */
  readonly quietMs?: number;
  /** Whether time limits are checked. Default: true. */
  readonly timed?: boolean;
  readonly onProgress?: (progress: Progress) => void;
  readonly stopping?: AbortSignal;
}

export interface Progress extends Counts {
  readonly phase: "starting" | "running" | "becoming quiet" | "checking";
  readonly elapsedMs: number;
  readonly faults: number;
  readonly arrived: number;
  readonly lastFault: string;
}

export interface RunResult {
  readonly options: RunOptions;
  readonly counts: Counts;
  readonly evidence: Evidence;
  readonly violations: readonly Violation[];
  /** Duration of run, quiet phase and check. */
  readonly tookMs: number;
}

const progressEveryMs = 1_000;
const answeredWaitMs = 240_000;

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, bus, forMs, folder, stopping = new AbortController().signal } = options;
  const runStartedAt = performance.now();
  await mkdir(folder, { recursive: true });
  const schedule =
    options.schedule ??
    makeSchedule({ seed, bus, forMs, perMinute: options.faultsPerMinute, services: options.services });
  await writeFile(join(folder, "schedule.json"), JSON.stringify(schedule, undefined, 1));
  const counts: Counts = { commands: 0, answered: 0, requests: 0, unknown: 0 };
  const reportProgress = progressReporter(options, counts);
  reportProgress({ phase: "starting" });
  {
    const { planted, timed = true } = options;
    await using harness = await createHarness({
      bus,
      folder,
      forMs,
      services: options.services,
      ...(planted && { planted }),
    });
    const startedAt = Date.now();
    const faults = await underLoad({ harness, schedule, options, counts, reportProgress, stopping });
    reportProgress({ phase: "becoming quiet" });
    const stoppedAt = Date.now();
    const quietAt = await waitUntilQuiet(harness, options.quietMs ?? quietMs);
    reportProgress({ phase: "checking" });
    await saveEvidence(harness, folder, { seed, startedAt, stoppedAt, timed, faults, ...(quietAt && { quietAt }) });
  }
  const evidence = await readEvidence(folder);
  return { options, counts, evidence, violations: check(evidence), tookMs: performance.now() - runStartedAt };
}

type Observed = Pick<Facts, "seed" | "startedAt" | "stoppedAt" | "quietAt" | "timed" | "faults">;

/** Stops the processes and saves everything that the checker reads, but for the history and the arrivals. */
export async function saveEvidence(harness: Harness, folder: string, observed: Observed): Promise<void> {
  const { bus, services, slots, exits } = harness;
  await Promise.all(slots.map((slot) => slot.end("stop")));
  await saveTables(harness.databases, services, folder);
  await saveOrderBroker(folder, harness.orderBroker.entries());
  await saveAudited(folder, await audit(bus, { url: harness.busUrl, expected: await countEvents(harness) }));
  await saveFacts(folder, { ...observed, bus, services: services.map(({ name }) => name), leaseMs, exits });
}

interface Load {
  readonly harness: Harness;
  readonly schedule: readonly Step[];
  readonly options: RunOptions;
  readonly counts: Counts;
  readonly reportProgress: ReportProgress;
  readonly stopping: AbortSignal;
}

/** Runs clients and nemesis until the time is over and every client has finished. */
async function underLoad({
  harness,
  schedule,
  options,
  counts,
  reportProgress,
  stopping,
}: Load): Promise<FaultRecord[]> {
  await using history = openLines<Line>(join(options.folder, files.history));
  const ended = new AbortController();
  const timeIsUp = AbortSignal.any([ended.signal, stopping]);
  let done = 0;
  let lastFault = "";
  const progress = setInterval(
    () => reportProgress({ phase: "running", faults: done, arrived: harness.receiver.arrived, lastFault }),
    progressEveryMs,
  );
  try {
    const onFault = ({ fault, target, happened }: FaultRecord) => {
      done += Number(happened);
      lastFault = `${fault} (${target})`;
    };
    const nemesis = runNemesis({ harness, schedule, onFault, stopping: timeIsUp });
    const load = Promise.all([nemesis, ...startClients({ harness, ...options, history, counts, stopping: timeIsUp })]);
    await Promise.race([load, waitForAnswers(options, counts, timeIsUp)]);
    ended.abort();
    await load;
    return await nemesis;
  } finally {
    clearInterval(progress);
    ended.abort();
  }
}

/** At most `answeredWaitMs` longer than the run, so that services that never answer end it too. */
async function waitForAnswers(
  { forMs, answeredMin = 0 }: RunOptions,
  counts: Counts,
  stopping: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const isAnswered = () => counts.answered >= answeredMin || elapsed() >= forMs + answeredWaitMs;
  while (!stopping.aborted && !(elapsed() >= forMs && isAnswered())) await sleep(50);
}

/** Returns the time at which everything was finished; undefined after the limit. */
export async function waitUntilQuiet(harness: Harness, withinMs: number): Promise<number | undefined> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    if (await harness.isQuiet()) return Date.now();
    await sleep(100);
  }
  return undefined;
}

async function countEvents({ databases, services }: Harness): Promise<number> {
  const publishing = services.filter(({ publishes }) => publishes);
  const counts = await Promise.all(
    publishing.map(
      async ({ name }) =>
        (
          await databases
            .of(name)
            .query(`select count(*)::int as n from ${schemaOf(name)}.outbox_events where subject = any($1)`, [
              auditedSubjects,
            ])
        ).rows[0].n,
    ),
  );
  return counts.reduce((sum, n) => sum + n, 0);
}

type ReportProgress = (update: Partial<Progress> & Pick<Progress, "phase">) => void;

function progressReporter({ onProgress }: RunOptions, counts: Counts): ReportProgress {
  const startedAt = performance.now();
  let last = { faults: 0, arrived: 0, lastFault: "" };
  return (update) => {
    last = { ...last, ...update };
    onProgress?.({ ...counts, ...last, ...update, elapsedMs: performance.now() - startedAt });
  };
}
