/** Counts the requests in flight per address. Bounds what one address can make the process hold. */
export class InFlight {
  readonly #byAddress = new Map<string, number>();
  readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  /** Returns a function that ends the request, idempotently; undefined if the address is at its limit. */
  begin(address: string): (() => void) | undefined {
    const count = this.#byAddress.get(address) ?? 0;
    if (count >= this.max) return undefined;
    this.#byAddress.set(address, count + 1);
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
    };
  }

  /** Addresses with a request in flight. */
  get size(): number {
    return this.#byAddress.size;
  }
}
