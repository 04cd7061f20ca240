/** What a process of a run is told at its start, and what it tells its owner. */
import type { BusKind } from "./settings.ts";

export interface ProcessOptions {
  readonly service: string;
  readonly bus: { readonly kind: BusKind; readonly url: string };
  /** How wrong its clock is. */
  readonly skewMs: number;
}

export type Report = { readonly url: string } | { readonly failedToStart: string };

/** The exit code of a start that failed because something was away: a supervisor tries again. */
export const couldNotStart = 75;
