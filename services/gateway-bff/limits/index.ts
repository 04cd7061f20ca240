/**
 * Rate limits: how much a caller may have in a time, counted together for all processes of the gateway.
 *
 * Promises, of every store that implements this port (one suite tests them all):
 *  - in any span as long as a policy's window, no more than its quota is granted of one key, however many processes ask
 *    and in whatever rhythm;
 *  - a request is granted by all of its keys or by none, and what is refused uses up nothing;
 *  - only the store's own clock counts, and a key that nobody uses takes no room after its time.
 */

export interface Policy {
  /** As the RateLimit headers call it. */
  readonly name: string;
  readonly quota: number;
  readonly windowMs: number;
}

/** So many units of what one key may have. A key belongs to one policy, and is in a request once. */
export interface Item {
  readonly key: string;
  readonly units: number;
  readonly policy: Policy;
}

/** How one item stands after its request was granted or refused. */
export interface Verdict {
  readonly item: Item;
  readonly fits: boolean;
  /** Units that could be had at once. */
  readonly remaining: number;
  /** How long until nothing counts any more. */
  readonly resetMs: number;
  /** How long until what did not fit would; 0 for what does. */
  readonly waitMs: number;
}

export interface Taken {
  readonly granted: boolean;
  /** Of every item when it was granted; when it was not, of those that did not fit. */
  readonly verdicts: readonly Verdict[];
}

export interface Limiter {
  take(items: readonly Item[]): Promise<Taken>;
}
