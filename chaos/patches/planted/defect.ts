/** A defect of a kind seen in the field, as the diff that somebody in a hurry would make, and what brings it out. */
import type { Step } from "../../faults/fault.ts";
import type { InvariantName } from "../../invariants.ts";
import type { BusKind } from "../../settings.ts";
import type { FailpointOrder } from "../orders.ts";
import type { Patch } from "../patch.ts";

export interface Planted {
  readonly name: string;
  /** What somebody did, and what comes of it. */
  readonly what: string;
  /** Any of these shows that it was seen. */
  readonly caughtBy: readonly InvariantName[];
  readonly patches: readonly Patch[];
  /** The smallest run in which it shows. Without any, the load alone brings it out. */
  readonly broughtOutBy?: BringOut;
}

interface BringOut {
  /** PostgreSQL, unless it shows on another only. */
  readonly bus?: BusKind;
  readonly forMs?: number;
  /** Commands a second. */
  readonly rate?: number;
  /** What every process does at its failpoints from its start: it is slow where the defect needs time. */
  readonly given?: readonly FailpointOrder[];
  readonly faults?: readonly PlannedFault[];
}

export type PlannedFault = Pick<Step, "atMs" | "fault" | "target"> & Partial<Pick<Step, "forMs" | "detail">>;

/** A failpoint that takes `ms` every time it is reached. */
export const slow = (name: string, ms: number): FailpointOrder => ({ name, action: "delay", hit: "every", ms });

/** The same thing again and again. */
export const repeatedly = (fault: string, target: string, detail: Step["detail"] = {}): readonly PlannedFault[] =>
  [1_000, 2_000, 3_000, 4_000, 5_000].map((atMs) => ({ atMs, fault, target, detail }));

/** Every process goes down at a failpoint, each time it has got there so often. */
export const deadly = (name: string, hit = 10): FailpointOrder => ({ name, action: "kill", hit, ms: 0 });
