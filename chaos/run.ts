/**
 * One run: a stage, a load, a nemesis, quiet, and the verdict. All evidence is in its folder, so that the verdict can be
 * looked into, and given again.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { audit } from "./auditor.ts";
import { check } from "./check.ts";
import { type Counts, runClient } from "./client.ts";
import {
  type Evidence,
  type FaultRecord,
  files,
  keepAudited,
  keepFacts,
  keepTables,
  readEvidence,
  saveOrderBroker,
} from "./evidence.ts";
import type { Step } from "./faults/fault.ts";
import { createHarness, type Harness } from "./harness.ts";
import { type Line, openLines, type Writer } from "./history.ts";
import type { Violation } from "./invariants.ts";
import { runNemesis } from "./nemesis.ts";
import { seededRandom } from "./random.ts";
import { makeSchedule } from "./schedule.ts";
import { services } from "./services/index.ts";
import { type BusKind, leaseMs, quietMs } from "./settings.ts";

export interface RunOptions {
  readonly seed: string;
  readonly bus: BusKind;
  readonly forMs: number;
  /** The load goes on after `forMs` until this many commands are answered. */
  readonly answeredMin?: number;
  /** Commands a second. */
  readonly rate: number;
  readonly faultsPerMinute: number;
  readonly folder: string;
  /** Instead of one made from the seed. */
  readonly schedule?: readonly Step[];
  /** A defect that the processes are to have. */
  readonly planted?: string;
  /** How long it may take to become quiet, where that is not the usual time. */
  readonly quietMs?: number;
  /** Whether times are held against the system; they are, unless the machine has other work. */
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
  /** When the first violation could be known: the run, its quiet and its check. */
  readonly tookMs: number;
}

/** So many at once that a process that is away does not stop them all. */
const clients = 32;
const progressEveryMs = 1_000;
const answeredWaitMs = 240_000;

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, bus, forMs, folder, stopping = new AbortController().signal } = options;
  const begunAt = performance.now();
  await mkdir(folder, { recursive: true });
  const schedule = options.schedule ?? makeSchedule({ seed, bus, forMs, perMinute: options.faultsPerMinute });
  await writeFile(join(folder, "schedule.json"), JSON.stringify(schedule, undefined, 1));
  const counts: Counts = { commands: 0, answered: 0, requests: 0, unknown: 0 };
  const tell = progressOf(options, counts);
  tell({ phase: "starting" });
  {
    const { planted, timed = true } = options;
    await using harness = await createHarness({ bus, folder, ...(planted && { planted }) });
    const startedAt = Date.now();
    const faults = await underLoad({ harness, schedule, options, counts, tell, stopping });
    tell({ phase: "becoming quiet" });
    const stoppedAt = Date.now();
    const quietAt = await untilQuiet(harness, options.quietMs ?? quietMs);
    tell({ phase: "checking" });
    await Promise.all(harness.slots.map((slot) => slot.end("stop")));
    await keepTables(harness.admin, folder);
    await saveOrderBroker(folder, harness.orderBroker.entries());
    await keepAudited(folder, await audit(bus, { url: harness.messageBroker.url, expected: await eventsOf(harness) }));
    const { exits } = harness;
    await keepFacts(folder, {
      seed,
      bus,
      startedAt,
      stoppedAt,
      ...(quietAt && { quietAt }),
      leaseMs,
      timed,
      faults,
      exits,
    });
  }
  const evidence = await readEvidence(folder);
  return { options, counts, evidence, violations: check(evidence), tookMs: performance.now() - begunAt };
}

interface Load {
  readonly harness: Harness;
  readonly schedule: readonly Step[];
  readonly options: RunOptions;
  readonly counts: Counts;
  readonly tell: Tell;
  readonly stopping: AbortSignal;
}

/** Clients and nemesis together, until the time is over and every client has its answer or has given up. */
async function underLoad({ harness, schedule, options, counts, tell, stopping }: Load): Promise<FaultRecord[]> {
  await using history = openLines<Line>(join(options.folder, files.history));
  const ended = new AbortController();
  const over = AbortSignal.any([ended.signal, stopping]);
  let done = 0;
  let lastFault = "";
  const progress = setInterval(
    () => tell({ phase: "running", faults: done, arrived: harness.receiver.arrived, lastFault }),
    progressEveryMs,
  );
  try {
    const onFault = ({ fault, target, happened }: FaultRecord) => {
      done += Number(happened);
      lastFault = `${fault} (${target})`;
    };
    const nemesis = runNemesis({ harness, schedule, onFault, stopping: over });
    const load = Promise.all([nemesis, ...clientsOf({ harness, options, history, counts, stopping: over })]);
    await Promise.race([load, untilEnough(options, counts, over)]);
    ended.abort();
    await load;
    return await nemesis;
  } finally {
    clearInterval(progress);
    ended.abort();
  }
}

/** At most `answeredWaitMs` longer than the run, so that services that never answer end it too. */
async function untilEnough({ forMs, answeredMin = 0 }: RunOptions, counts: Counts, over: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  const isAnswered = () => counts.answered >= answeredMin || elapsed() >= forMs + answeredWaitMs;
  while (!over.aborted && !(elapsed() >= forMs && isAnswered())) await sleep(50);
}

interface ClientsOptions extends Pick<Load, "harness" | "options" | "counts" | "stopping"> {
  readonly history: Writer<Line>;
}

function clientsOf({ harness, options, history, counts, stopping }: ClientsOptions): Promise<void>[] {
  const called = services.flatMap(({ name, workload, share = 1 }) => (workload ? [{ name, workload, share }] : []));
  return called.flatMap(({ name, workload, share }) =>
    Array.from({ length: clients }, (_, n) => {
      const random = seededRandom(`${options.seed}/${name}/client ${n}`);
      const where = () => {
        const serving = harness.slots.flatMap((slot) =>
          slot.service === name && slot.http ? [{ name: slot.name, url: slot.http.url }] : [],
        );
        return serving.length > 0 ? random.pick(serving) : undefined;
      };
      const everyMs = (clients * 1_000) / (options.rate * share);
      return runClient(
        { workload: workload(random.for("wishes")), random, history, where, stopping, count: counts },
        everyMs,
      );
    }),
  );
}

/** When nothing was left to do; undefined if that never came within its time. */
async function untilQuiet(harness: Harness, withinMs: number): Promise<number | undefined> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    if ((await harness.unfinished()) === 0) return Date.now();
    await sleep(100);
  }
  return undefined;
}

async function eventsOf({ admin }: Harness): Promise<number> {
  const publishing = services.filter(({ publishes }) => publishes);
  const counts = await Promise.all(
    publishing.map(
      async ({ name }) => (await admin.query(`select count(*)::int as n from ${name}.outbox_events`)).rows[0].n,
    ),
  );
  return counts.reduce((sum, n) => sum + n, 0);
}

type Tell = (news: Partial<Progress> & Pick<Progress, "phase">) => void;

function progressOf({ onProgress }: RunOptions, counts: Counts): Tell {
  const startedAt = performance.now();
  let last = { faults: 0, arrived: 0, lastFault: "" };
  return (news) => {
    last = { ...last, ...news };
    onProgress?.({ ...counts, ...last, ...news, elapsedMs: performance.now() - startedAt });
  };
}
