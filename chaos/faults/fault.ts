/** A fault, its targets, and its plan in the schedule. */

import type { Harness } from "../harness.ts";
import type { Random } from "../random.ts";
import type { BusKind } from "../settings.ts";
import type { Slot } from "../slot.ts";

/** One line of a schedule. */
export interface Step {
  readonly n: number;
  readonly atMs: number;
  readonly fault: string;
  /** A process ("entitlement_1"), a service ("entitlement"), an engine ("postgres", "broker"), "webhook", or "order broker". */
  readonly target: string;
  /** Duration, for faults that have one. */
  readonly forMs: number;
  readonly detail: Readonly<Record<string, string | number>>;
}

/** The parts of a run that are known before it starts. */
export interface Plan {
  readonly bus: BusKind;
  readonly processes: readonly Target[];
}

interface Target {
  readonly name: string;
  readonly service: string;
}

export interface Fault {
  readonly name: string;
  /** Relative frequency. */
  readonly weight: number;
  targets(plan: Plan): readonly string[];
  /** Duration and parameters. */
  plan?(random: Random, context: Plan & { readonly target: string }): Pick<Step, "forMs" | "detail">;
  /** How long the target recovers after `forMs`; no other fault is planned for it until then. */
  readonly aftermathMs: number;
  /** Injects and reverts the fault. Returns false if it could not be injected. */
  inject(harness: Harness, step: Step): Promise<boolean>;
}

export const everyProcess = ({ processes }: Plan): string[] => processes.map(({ name }) => name);

export const everyService = ({ processes }: Plan): string[] => [...new Set(processes.map(({ service }) => service))];

export function findSlot({ slots }: Harness, { target }: Step): Slot {
  const found = slots.find(({ name }) => name === target);
  if (!found) throw new Error(`there is no process ${target}`);
  return found;
}

/** From `min` to `max` milliseconds. */
export const lasting =
  (min: number, max: number) =>
  (random: Random): Pick<Step, "forMs" | "detail"> => ({ forMs: random.between(min, max), detail: {} });
