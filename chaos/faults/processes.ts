/** What happens to processes: they are killed, held still past their leases, told to stop, and given a wrong clock. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Harness } from "../harness.ts";
import { failpoints } from "../patches/index.ts";
import type { FailpointOrder } from "../patches/orders.ts";
import type { Random } from "../random.ts";
import { serviceNamed } from "../services/index.ts";
import { leaseMs } from "../settings.ts";
import { everyProcess, type Fault, lasting, type Plan, type Step, slotOf } from "./fault.ts";

/** On a busy machine a process is back after this long. */
const restartMs = 2_500;
/** So long a process may take to end and another to start, on a busy machine too. */
const startMs = 60_000;
/** So long one that serves may take to reach its failpoint; if it does not, it is replaced. */
const reachMs = 5_000;

const hourMs = 60 * 60 * 1_000;

export const processFaults: readonly Fault[] = [
  {
    name: "kill",
    weight: 14,
    targets: everyProcess,
    aftermathMs: restartMs,
    async inject(harness, step) {
      const slot = slotOf(harness, step);
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
      const slot = slotOf(harness, step);
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
      const slot = slotOf(harness, step);
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
      const slot = slotOf(harness, step);
      if (slot.pid === undefined) return false;
      slot.terminate({ skewMs: Number(step.detail.skewMs) });
      await slot.up();
      return true;
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

function planFailpoint(random: Random, about: Plan & { target: string }): Pick<Step, "forMs" | "detail"> {
  const { bus, processes, target } = about;
  const { failpoints: beginnings } = serviceNamed(processes.find(({ name }) => name === target)?.service ?? "");
  const passed = failpoints.filter(
    ({ name }) =>
      beginnings.some((beginning) => name.startsWith(beginning)) &&
      (bus === "postgres" || !name.startsWith("delivery.")),
  );
  const { name } = random.pick(passed);
  const [action, hit] = [random.chance(0.7) ? "kill" : "stop", isSeldom.test(name) ? 1 : random.between(1, 6)];
  return { forMs: Math.round(1.5 * leaseMs), detail: { name, action, hit } };
}

/** Reached once in the life of a process, or only when something takes long. */
const isSeldom = /^stop\.|renewing$|alone$/;

/** The process is replaced by one that has the failpoint, which then does to itself what the failpoint says. */
async function injectFailpoint(harness: Harness, step: Step): Promise<boolean> {
  const slot = slotOf(harness, step);
  if (slot.pid === undefined) return false;
  const { name, action, hit } = step.detail as unknown as FailpointOrder;
  const since = harness.exits.length;
  slot.terminate({ failpoints: [{ name, action, hit, ms: 0 }] });
  const isKilled = () =>
    harness.exits.slice(since).some(({ target, signal }) => target === slot.name && signal === "SIGKILL");
  const isReached = () => (action === "kill" ? isKilled() : slot.isPaused());
  const isUp = () => slot.pid !== undefined || isReached();
  await waitFor(isUp, startMs);
  const isTold = name.startsWith("stop.");
  if (isTold) slot.terminate();
  // One that was told to stop gets there, or is followed by another: told twice, it would end in a hurry, with code 1.
  if (isTold) await waitFor(isUp, startMs);
  else await waitFor(isReached, reachMs);
  const reached = isReached();
  if (reached && action === "stop") await sleep(step.forMs);
  // One that was not reached must not be reached later, when nobody waits for it any more.
  if (reached) slot.resume();
  else if (!isTold) slot.terminate();
  await slot.up();
  return reached;
}

async function waitFor(condition: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!condition() && performance.now() < deadline) await sleep(20);
}
