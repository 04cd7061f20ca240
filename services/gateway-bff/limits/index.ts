/**
 * Rate limits, counted together for all processes of the gateway.
 *
 * Guarantees of every store that implements this port (one suite tests them all):
 *  - in any span as long as a policy's window, one key is granted at most its quota, whatever the number of processes and
 *    the rhythm of requests;
 *  - a request is granted by all of its keys or by none, and a refusal uses up nothing;
 *  - only the store's clock counts, and an unused key takes no room after its time.
 */
import type { Policy } from "../config.ts";

/** Units taken from one key. A key belongs to one policy and occurs once in a request. */
export interface Item {
  readonly key: string;
  readonly units: number;
  readonly policy: Policy;
}

/** The state of one item after its request was granted or refused. */
export interface LimitResult {
  readonly item: Item;
  readonly fits: boolean;
  /** Units that are available at once. */
  readonly remaining: number;
  /** Time until the key is unused. */
  readonly resetMs: number;
  /** Time until a refused item would fit; 0 if it fits. */
  readonly waitMs: number;
}

export interface LimitDecision {
  readonly granted: boolean;
  /** All items if granted, else those that did not fit. */
  readonly results: readonly LimitResult[];
}

export interface Limiter {
  take(items: readonly Item[]): Promise<LimitDecision>;
}
