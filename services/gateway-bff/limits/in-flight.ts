/** How many requests of each address are being answered now. Bounds what one address can make the process hold. */

export class InFlight {
  readonly #byAddress = new Map<string, number>();
  readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  /** Returns what ends it, which may be called twice; undefined when the address has as many as it may. */
  begin(address: string): (() => void) | undefined {
    const count = this.#byAddress.get(address) ?? 0;
    if (count >= this.max) return undefined;
    this.#byAddress.set(address, count + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
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
