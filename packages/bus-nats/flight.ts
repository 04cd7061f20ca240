/** The events of one call that are on their way, and what has become of each. It lands when all are known. */
import { type Outcome, retry } from "@todoke/kernel/worker";
import type { Address } from "./names.ts";

/** The relay has its own backoff; this is for those who have none. */
const retryMs = 1_000;

export const notKnown = (why: string): Outcome => retry(retryMs, why);

export class Flight {
  /** Where each event is going; undefined for one that has nowhere to go. */
  readonly addresses: readonly (Address | undefined)[];
  readonly #outcomes: Outcome[];
  readonly #landed = Promise.withResolvers<readonly Outcome[]>();
  #missing: number;

  constructor(addresses: readonly (Address | undefined)[]) {
    this.addresses = addresses;
    this.#outcomes = new Array<Outcome>(addresses.length);
    this.#missing = addresses.length;
  }

  get landed(): Promise<readonly Outcome[]> {
    return this.#landed.promise;
  }

  /** The first word on an event counts. */
  settle(n: number, outcome: Outcome): void {
    if (this.#outcomes[n]) return;
    this.#outcomes[n] = outcome;
    this.#missing -= 1;
    if (this.#missing === 0) this.#landed.resolve(this.#outcomes);
  }

  /** The rest may be stored or not: only the same events again, with the same ids, can tell. */
  giveUp(why: string): void {
    for (const n of this.addresses.keys()) this.settle(n, notKnown(why));
  }
}
