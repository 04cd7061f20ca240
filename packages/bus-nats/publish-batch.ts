/** The events of one publish call and their outcomes. It is completed when every outcome is known. */
import { type Outcome, retry } from "@todoke/kernel/worker";
import type { Address } from "./names.ts";

/** For callers without a backoff of their own; the relay has one. */
const retryMs = 1_000;

/** The event may or may not be stored. */
export const unconfirmed = (reason: string): Outcome => retry(retryMs, reason);

export class PublishBatch {
  /** The destination of each event; undefined for an invalid subject. */
  readonly addresses: readonly (Address | undefined)[];
  readonly #outcomes: Outcome[];
  readonly #completed = Promise.withResolvers<readonly Outcome[]>();
  #missing: number;

  constructor(addresses: readonly (Address | undefined)[]) {
    this.addresses = addresses;
    this.#outcomes = new Array<Outcome>(addresses.length);
    this.#missing = addresses.length;
  }

  get completed(): Promise<readonly Outcome[]> {
    return this.#completed.promise;
  }

  /** The first outcome of an event counts. */
  set(index: number, outcome: Outcome): void {
    if (this.#outcomes[index]) return;
    this.#outcomes[index] = outcome;
    this.#missing -= 1;
    if (this.#missing === 0) this.#completed.resolve(this.#outcomes);
  }

  /** Only publishing the same events again, with the same ids, can tell whether they are stored. */
  setRestUnconfirmed(reason: string): void {
    for (const index of this.addresses.keys()) this.set(index, unconfirmed(reason));
  }
}
