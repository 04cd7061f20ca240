/** Options of a process in a run, and its report to its parent. */
import type { BusFaults } from "./flaky-bus.ts";
import type { BusKind } from "./settings.ts";

export interface ProcessOptions {
  readonly service: string;
  readonly bus: { readonly kind: BusKind; readonly url: string };
  /** Offset of its clock. */
  readonly skewMs: number;
}

/** Sent to a process that runs. */
export type Disturbance = Partial<BusFaults> & {
  /** The new offset of its clock. */
  readonly skewMs?: number;
  /** Whether host names are resolved. */
  readonly resolvesNames?: boolean;
};

export type Report = { readonly url: string } | { readonly failedToStart: string };

/** Exit code of a start that failed because a dependency was unavailable; it is retried. */
export const startFailedCode = 75;
