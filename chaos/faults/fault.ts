/** The words of the nemesis: what a fault is, what it is done to, and how it is planned before the run begins. */

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
  /** How long it goes on, where it does. */
  readonly forMs: number;
  readonly detail: Readonly<Record<string, string | number>>;
}

/** What is known of a run before it begins. */
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
  /** How often it comes, beside the others. */
  readonly weight: number;
  targets(plan: Plan): readonly string[];
  /** How long it goes on, and what else has to be known of it. */
  plan?(random: Random, about: Plan & { readonly target: string }): Pick<Step, "forMs" | "detail">;
  /** How long its target is busy with it, beyond `forMs`: nothing else is planned for it meanwhile. */
  readonly aftermathMs: number;
  /** Does it and undoes it. False when there was nothing to do it to. */
  inject(harness: Harness, step: Step): Promise<boolean>;
}

export const everyProcess = ({ processes }: Plan): string[] => processes.map(({ name }) => name);

export const everyService = ({ processes }: Plan): string[] => [...new Set(processes.map(({ service }) => service))];

export function slotOf({ slots }: Harness, { target }: Step): Slot {
  const found = slots.find(({ name }) => name === target);
  if (!found) throw new Error(`there is no process ${target}`);
  return found;
}

/** From `min` to `max` milliseconds. */
export const lasting =
  (min: number, max: number) =>
  (random: Random): Pick<Step, "forMs" | "detail"> => ({ forMs: random.between(min, max), detail: {} });
