/** What will be done, to whom, and when: made from the seed before anything is started. The same seed, the same schedule. */

import type { Plan, Step } from "./faults/fault.ts";
import { faults } from "./faults/index.ts";
import { seededRandom } from "./random.ts";
import { services } from "./services/index.ts";
import type { BusKind } from "./settings.ts";

export interface ScheduleOptions {
  readonly seed: string;
  readonly bus: BusKind;
  readonly forMs: number;
  readonly perMinute: number;
  /** Only these, by their names; all by default. */
  readonly only?: readonly string[];
}

/** The first command is answered before the first fault, and the last fault is over before the end. */
const marginMs = 1_000;

export function makeSchedule({ seed, bus, forMs, perMinute, only }: ScheduleOptions): Step[] {
  const random = seededRandom(`${seed}/${bus}/schedule`);
  const plan: Plan = { bus, processes: processesOf() };
  const choice = faults.filter((fault) => (only?.includes(fault.name) ?? true) && fault.targets(plan).length > 0);
  const gapMs = 60_000 / perMinute;
  const busyUntil = new Map<string, number>();
  const steps: Step[] = [];
  for (let atMs = marginMs; choice.length > 0; ) {
    atMs += Math.round(gapMs * (0.5 + random.next()));
    if (atMs > forMs - marginMs) break;
    const fault = random.weighted(choice);
    const free = fault.targets(plan).filter((target) => (busyUntil.get(target) ?? 0) <= atMs);
    if (free.length === 0) continue;
    const target = random.pick(free);
    const { forMs: lastsMs, detail } = fault.plan?.(random, { ...plan, target }) ?? { forMs: 0, detail: {} };
    busyUntil.set(target, atMs + lastsMs + fault.aftermathMs);
    steps.push({ n: steps.length + 1, atMs, fault: fault.name, target, forMs: lastsMs, detail });
  }
  return steps;
}

const processesOf = (): Plan["processes"] =>
  services.flatMap(({ name, copies }) =>
    Array.from({ length: copies }, (_, copy) => ({ name: `${name}_${copy + 1}`, service: name })),
  );
