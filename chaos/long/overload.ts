/**
 * `npm run overload`: ten times what the services can serve, for a minute (`--minutes n`). Answers must stay correct, and every
 * refusal must be a 429 or a 503 with Retry-After; memory must stay bounded, and the services must recover within seconds.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tokenFor } from "../callers.ts";
import { check } from "../check.ts";
import { processPicker } from "../clients.ts";
import { files, readEvidence } from "../evidence.ts";
import { createHarness, type Harness } from "../harness.ts";
import { type Attempt, type Line, openLines, type Writer } from "../history.ts";
import { seededRandom } from "../random.ts";
import { toText, violationLines } from "../report.ts";
import { post } from "../request.ts";
import { saveEvidence, waitUntilQuiet } from "../run.ts";
import type { Workload } from "../services/index.ts";
import { readLongArguments } from "./arguments.ts";
import { type Limit, measureLimit } from "./limit.ts";
import { measureProcesses } from "./measure.ts";
import { percentile } from "./series.ts";

const factor = 10;
const limitMs = 10_000;
/** Requests without a response at one time; more would only measure this process. */
const inFlightMax = 4_000;
const recoveryMsMax = 10_000;
const quietMs = 240_000;
/** What one process may take at most, of a default heap of some gigabytes. */
const memoryMbMax = 1_024;

process.exit(await overload(process.argv.slice(2)));

async function overload(argv: readonly string[]): Promise<number> {
  const { minutes, bus, services = ["entitlement", "orders", "points"], out } = readLongArguments(argv, 1);
  const folder = out ?? (await mkdtemp(join(tmpdir(), "todoke-overload-")));
  const forMs = minutes * 60_000;
  await using harness = await createHarness({ bus, folder, forMs, services });
  const startedAt = Date.now();
  const outcome = await underOverload(harness, folder, forMs);
  const stoppedAt = Date.now();
  const quietAt = await waitUntilQuiet(harness, quietMs);
  const observed = { seed: "overload", startedAt, stoppedAt, timed: false, faults: [], ...(quietAt && { quietAt }) };
  await saveEvidence(harness, folder, observed);
  const violations = check(await readEvidence(folder));
  const errors = errorsIn(outcome);
  console.log(toText(toSummary(outcome)));
  for (const line of [...errors, ...violationLines(violations)]) console.log(line);
  console.log(`Evidence: ${folder}`);
  return errors.length + violations.length === 0 ? 0 : 1;
}

interface Outcome {
  readonly limit: Limit;
  readonly seconds: number;
  readonly attempts: readonly Attempt[];
  readonly cpuMs: number;
  readonly largestMb: { readonly before: number; readonly most: number; readonly after: number };
  /** Until a request was answered as fast as before; undefined if none was in time. */
  readonly recoveredMs: number | undefined;
}

async function underOverload(harness: Harness, folder: string, forMs: number): Promise<Outcome> {
  await using history = openLines<Line>(join(folder, files.history));
  const limit = await measureLimit(harness, history, limitMs);
  const attempts: Attempt[] = [];
  const write = (line: Attempt) => {
    attempts.push(line);
    history.write(line);
  };
  const load = { harness, write };
  const before = measureProcesses(harness);
  let most = before.largestMb;
  const watching = setInterval(() => {
    most = Math.max(most, measureProcesses(harness).largestMb);
  }, 500);
  const startedAt = performance.now();
  await sendAtRate(load, limit.perSecond * factor, forMs).finally(() => clearInterval(watching));
  const seconds = (performance.now() - startedAt) / 1_000;
  const { cpuMs } = measureProcesses(harness);
  const recoveredMs = await waitForRecovery(load);
  const largestMb = { before: before.largestMb, most, after: measureProcesses(harness).largestMb };
  return { limit, seconds, attempts, cpuMs: cpuMs - before.cpuMs, largestMb, recoveredMs };
}

interface OpenLoad {
  readonly harness: Harness;
  readonly write: Writer<Attempt>["write"];
}

/** Sends commands at their time, whether or not the ones before are answered; resolves when all are. */
async function sendAtRate({ harness, write }: OpenLoad, perSecond: number, forMs: number): Promise<void> {
  const callers = openCallers(harness);
  const sharesSum = callers.reduce((sum, { share }) => sum + share, 0);
  const inFlight = new Set<Promise<void>>();
  const startedAt = performance.now();
  for (let sent = 0; ; ) {
    const elapsed = performance.now() - startedAt;
    if (elapsed >= forMs) break;
    for (const caller of callers) {
      const due = ((elapsed / 1_000) * perSecond * caller.share) / sharesSum;
      for (; caller.sent < due; caller.sent++) {
        if (inFlight.size >= inFlightMax) continue; // Counted as sent: the rate stays open.
        const one = caller.send(write).finally(() => inFlight.delete(one));
        inFlight.add(one);
        if (++sent % 50 === 0) await sleep(0);
      }
    }
    await sleep(1);
  }
  await Promise.all(inFlight);
}

interface Caller {
  readonly share: number;
  sent: number;
  send(write: OpenLoad["write"]): Promise<void>;
}

function openCallers(harness: Harness): Caller[] {
  return harness.services.flatMap(({ name, workload, share = 1 }) => {
    if (!workload) return [];
    const random = seededRandom(`overload/${name}`);
    const [commands, where] = [workload(random), processPicker({ harness }, name, random)];
    return [{ share, sent: 0, send: (write) => sendNext(commands, where, write) }];
  });
}

/** The first attempt only: a refused command is not sent again. */
async function sendNext(
  commands: Workload,
  where: ReturnType<typeof processPicker>,
  write: OpenLoad["write"],
): Promise<void> {
  const { commands: some } = commands.next();
  const [command] = some;
  if (!command) return;
  const { method, path, key, body, caller } = command;
  const from = Date.now();
  const answer = await post(where(), { ...(method && { method }), path, key, body, token: tokenFor(caller) });
  write({ command, attempt: 1, from, to: Date.now(), ...answer });
}

/** The time until ten requests in a row are answered. */
async function waitForRecovery({ harness, write }: OpenLoad): Promise<number | undefined> {
  const callers = openCallers(harness);
  const startedAt = performance.now();
  for (let inARow = 0; performance.now() - startedAt < recoveryMsMax; ) {
    const caller = callers[inARow % callers.length];
    let isAnswered = false;
    await caller?.send((line) => {
      isAnswered = line.end !== "unknown";
      write(line);
    });
    inARow = isAnswered ? inARow + 1 : 0;
    if (inARow === 10) return performance.now() - startedAt;
  }
  return undefined;
}

const isRefusal = ({ status, retryAfter }: Attempt): boolean =>
  (status === 429 || status === 503) && retryAfter !== undefined;

const isAnswered = ({ end }: Attempt): boolean => end !== "unknown";

/** Sentences. A request without any response was cut by the client's timeout. */
function errorsIn({ attempts, largestMb, recoveredMs }: Outcome): string[] {
  const wrong = attempts.filter((each) => each.status !== undefined && !isAnswered(each) && !isRefusal(each));
  const byStatus = Map.groupBy(wrong, ({ status, answer }) => `${status} ${answer?.slice(0, 120)}`);
  return [
    ...[...byStatus].map(([what, all]) => `${all.length} responses were neither answers nor refusals: ${what}`),
    ...(largestMb.most > memoryMbMax ? [`a process took ${largestMb.most.toFixed(0)} MB`] : []),
    ...(recoveredMs === undefined ? [`the services did not recover within ${recoveryMsMax / 1_000} s`] : []),
  ];
}

function toSummary({ limit, seconds, attempts, cpuMs, largestMb, recoveredMs }: Outcome) {
  const [answered, refused] = [attempts.filter(isAnswered), attempts.filter(isRefusal)];
  const took = (all: readonly Attempt[], share: number) =>
    `${percentile(
      all.map(({ from, to }) => to - from),
      share,
    ).toFixed(0)} ms`;
  // What is left of the CPU time after the answered commands, at the price that they had below the limit.
  const perRefusal = (cpuMs - answered.length * limit.cpuMs) / Math.max(1, refused.length);
  const rows = [
    ["limit", `${limit.perSecond.toFixed(0)} commands/s`],
    ["sent", `${(attempts.length / seconds).toFixed(0)}/s for ${seconds.toFixed(0)} s`],
    [
      "answered",
      `${(answered.length / seconds).toFixed(0)}/s, p50 ${took(answered, 0.5)}, p99 ${took(answered, 0.99)}`,
    ],
    ["refused with Retry-After", `${refused.length}, p50 ${took(refused, 0.5)}`],
    ["without a response in time", String(attempts.filter(({ status }) => status === undefined).length)],
    ["CPU time", `${limit.cpuMs.toFixed(2)} ms per command, ${perRefusal.toFixed(2)} ms per refusal`],
    [
      "largest process",
      `${largestMb.before.toFixed(0)} MB before, ${largestMb.most.toFixed(0)} MB at most, ${largestMb.after.toFixed(0)} MB after`,
    ],
    ["recovered after", recoveredMs === undefined ? "never" : `${(recoveredMs / 1_000).toFixed(1)} s`],
  ];
  return { head: ["", ""], rows };
}
