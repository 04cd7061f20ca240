/** A realistic defect as a patch, with the run that shows it. */
import type { Step } from "../../faults/fault.ts";
import type { InvariantName } from "../../invariants.ts";
import type { BusKind } from "../../settings.ts";
import type { FailpointOrder } from "../orders.ts";
import type { Patch } from "../patch.ts";

export interface Planted {
  readonly name: string;
  /** The change and its consequence. */
  readonly what: string;
  /** The invariants that may catch it. */
  readonly caughtBy: readonly InvariantName[];
  readonly patches: readonly Patch[];
  /** The smallest run that shows it. Default: load without faults. */
  readonly broughtOutBy?: BringOut;
}

interface BringOut {
  /** Default: PostgreSQL. */
  readonly bus?: BusKind;
  /** Names of the services to run. Default: entitlement, notification and orders. */
  readonly services?: readonly string[];
  readonly forMs?: number;
  /** Commands per second. */
  readonly rate?: number;
  /** Relays and consumers work in transactions of the bus's database; by default they work by claims. */
  readonly inTransactions?: boolean;
  /** Failpoint actions in every process, for instance a delay that the defect needs. */
  readonly given?: readonly FailpointOrder[];
  readonly faults?: readonly PlannedFault[];
}

export type PlannedFault = Pick<Step, "atMs" | "fault" | "target"> & Partial<Pick<Step, "forMs" | "detail">>;

/** Delays every hit of a failpoint by `ms`. */
export const slow = (name: string, ms: number): FailpointOrder => ({ name, action: "delay", hit: "every", ms });

/** Injects the same fault every second. */
export const repeatedly = (fault: string, target: string, detail: Step["detail"] = {}): readonly PlannedFault[] =>
  [1_000, 2_000, 3_000, 4_000, 5_000].map((atMs) => ({ atMs, fault, target, detail }));

/** Kills every process at the n-th hit of a failpoint. */
export const deadly = (name: string, hit = 10): FailpointOrder => ({ name, action: "kill", hit, ms: 0 });
