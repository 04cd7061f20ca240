/** Builds the fault schedule from the seed before the run. The same seed gives the same schedule. */

import type { Plan, Step } from "./faults/fault.ts";
import { faults } from "./faults/index.ts";
import { seededRandom } from "./random.ts";
import { processName, selectServices } from "./services/index.ts";
import type { BusKind } from "./settings.ts";

export interface ScheduleOptions {
  readonly seed: string;
  readonly bus: BusKind;
  readonly forMs: number;
  readonly perMinute: number;
  /** Names of the faults to use. Default: all. */
  readonly only?: readonly string[];
  /** Names of the services that run. Default: all. */
  readonly services?: readonly string[] | undefined;
}

/** No fault in the first and the last second of the run. */
const marginMs = 1_000;

export function makeSchedule({ seed, bus, forMs, perMinute, only, services }: ScheduleOptions): Step[] {
  const random = seededRandom(`${seed}/${bus}/schedule`);
  const plan: Plan = { bus, processes: listProcesses(services) };
  const candidates = faults.filter((fault) => (only?.includes(fault.name) ?? true) && fault.targets(plan).length > 0);
  const gapMs = 60_000 / perMinute;
  const busyUntil = new Map<string, number>();
  const steps: Step[] = [];
  for (let atMs = marginMs; candidates.length > 0; ) {
    atMs += Math.round(gapMs * (0.5 + random.next()));
    if (atMs > forMs - marginMs) break;
    const fault = random.weighted(candidates);
    const free = fault.targets(plan).filter((target) => (busyUntil.get(target) ?? 0) <= atMs);
    if (free.length === 0) continue;
    const target = random.pick(free);
    const { forMs: lastsMs, detail } = fault.plan?.(random, { ...plan, target }) ?? { forMs: 0, detail: {} };
    busyUntil.set(target, atMs + lastsMs + fault.aftermathMs);
    steps.push({ n: steps.length + 1, atMs, fault: fault.name, target, forMs: lastsMs, detail });
  }
  return steps;
}

const listProcesses = (names: ScheduleOptions["services"]): Plan["processes"] =>
  selectServices(names).flatMap(({ name, copies }) =>
    Array.from({ length: copies }, (_, copy) => ({ name: processName(name, copy + 1), service: name })),
  );
