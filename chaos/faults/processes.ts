/** Process faults: kill, pause past the lease, SIGTERM, wrong clock, failpoints. */
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Harness } from "../harness.ts";
import { failpoints } from "../patches/index.ts";
import type { FailpointOrder } from "../patches/orders.ts";
import type { Random } from "../random.ts";
import { getService } from "../services/index.ts";
import { leaseMs } from "../settings.ts";
import { everyProcess, type Fault, findSlot, lasting, type Plan, type Step } from "./fault.ts";

/** Restart of a process on a busy machine. */
const restartMs = 2_500;
/** Limit for a process to exit and its successor to start. */
const startMs = 60_000;
/** Limit for a serving process to reach its failpoint; after that it is replaced. */
const reachMs = 5_000;

/** What a process may have by default on Linux. */
const openFilesMax = 1_024;

const limitOpenFiles = async (pid: number, max: number): Promise<void> =>
  void (await promisify(execFile)("prlimit", ["--pid", String(pid), `--nofile=${max}:`]));

const hourMs = 60 * 60 * 1_000;

export const processFaults: readonly Fault[] = [
  {
    name: "kill",
    weight: 14,
    targets: everyProcess,
    aftermathMs: restartMs,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.kill();
      await slot.up();
      return true;
    },
  },
  {
    name: "terminate",
    weight: 8,
    targets: everyProcess,
    aftermathMs: restartMs,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.terminate();
      await slot.up();
      return true;
    },
  },
  {
    name: "pause",
    weight: 8,
    targets: everyProcess,
    plan: lasting(1.2 * leaseMs, 2 * leaseMs),
    aftermathMs: 500,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.pause();
      await sleep(step.forMs);
      slot.resume();
      return true;
    },
  },
  {
    name: "clock skew",
    weight: 4,
    targets: everyProcess,
    plan: (random) => ({ forMs: 0, detail: { skewMs: random.pick([-hourMs, -2 * leaseMs, 2 * leaseMs, hourMs]) } }),
    aftermathMs: restartMs,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.terminate({ skewMs: Number(step.detail.skewMs) });
      await slot.up();
      return true;
    },
  },
  {
    name: "clock jump",
    weight: 3,
    targets: everyProcess,
    plan: (random) => ({
      forMs: random.between(500, 3_000),
      detail: { skewMs: random.pick([-12 * hourMs, -hourMs, hourMs, 12 * hourMs]) },
    }),
    aftermathMs: 500,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.disturb({ skewMs: Number(step.detail.skewMs) });
      await sleep(step.forMs);
      slot.disturb({ skewMs: 0 });
      return true;
    },
  },
  {
    name: "names unresolved",
    weight: 3,
    targets: everyProcess,
    plan: lasting(300, 2_500),
    aftermathMs: 1_000,
    async inject(harness, step) {
      const slot = findSlot(harness, step);
      if (slot.pid === undefined) return false;
      slot.disturb({ resolvesNames: false });
      // Its next connections need a name.
      slot.database.closeConnections();
      await sleep(step.forMs);
      slot.disturb({ resolvesNames: true });
      return true;
    },
  },
  {
    name: "no file descriptors",
    weight: 3,
    targets: everyProcess,
    plan: lasting(500, 2_500),
    aftermathMs: 1_000,
    async inject(harness, step) {
      const { pid } = findSlot(harness, step);
      if (pid === undefined) return false;
      try {
        // A soft limit below what is open: the process keeps its files and sockets and can open no other.
        await limitOpenFiles(pid, 3);
        await sleep(step.forMs);
        await limitOpenFiles(pid, openFilesMax);
        return true;
      } catch {
        return false; // The process has exited, or there is no prlimit here.
      }
    },
  },
  {
    name: "failpoint",
    weight: 16,
    targets: everyProcess,
    plan: planFailpoint,
    aftermathMs: 2 * restartMs + reachMs,
    inject: injectFailpoint,
  },
];

function planFailpoint(random: Random, context: Plan & { target: string }): Pick<Step, "forMs" | "detail"> {
  const { bus, processes, target } = context;
  const { failpoints: prefixes } = getService(processes.find(({ name }) => name === target)?.service ?? "");
  const candidates = failpoints.filter(
    ({ name }) =>
      prefixes.some((prefix) => name.startsWith(prefix)) && (bus === "postgres" || !name.startsWith("delivery.")),
  );
  const { name } = random.pick(candidates);
  const [action, hit] = [random.chance(0.7) ? "kill" : "stop", isRare.test(name) ? 1 : random.between(1, 6)];
  return { forMs: Math.round(1.5 * leaseMs), detail: { name, action, hit } };
}

/** Reached once per process, or only when something is slow. */
const isRare = /^stop\.|renewing$|alone$/;

/** Replaces the process by one with the failpoint, which kills or stops itself there. */
async function injectFailpoint(harness: Harness, step: Step): Promise<boolean> {
  const slot = findSlot(harness, step);
  if (slot.pid === undefined) return false;
  const { name, action, hit } = step.detail as unknown as FailpointOrder;
  const since = harness.exits.length;
  slot.terminate({ failpoints: [{ name, action, hit, ms: 0 }] });
  const isKilled = () =>
    harness.exits.slice(since).some(({ target, signal }) => target === slot.name && signal === "SIGKILL");
  const isReached = () => (action === "kill" ? isKilled() : slot.isPaused());
  const isUp = () => slot.pid !== undefined || isReached();
  await waitFor(isUp, startMs);
  const isStopFailpoint = name.startsWith("stop.");
  if (isStopFailpoint) slot.terminate();
  // It reaches the failpoint or exits. A second SIGTERM would force an exit with code 1.
  if (isStopFailpoint) await waitFor(isUp, startMs);
  else await waitFor(isReached, reachMs);
  const reached = isReached();
  if (reached && action === "stop") await sleep(step.forMs);
  // A failpoint that was not reached must not be reached later.
  if (reached) slot.resume();
  else if (!isStopFailpoint) slot.terminate();
  await slot.up();
  return reached;
}

async function waitFor(condition: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!condition() && performance.now() < deadline) await sleep(20);
}
