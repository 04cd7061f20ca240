/** Decides when a process that died is started again, and when that is hopeless. */

const firstMs = 100;
const capMs = 30_000;

/** A process that was ready for this long does not fail repeatedly at once: its next delay is the first again. */
const stableMs = 60_000;

/** After this many failed starts in a row, another will not succeed: the command fails, and its orchestrator decides. */
const failedStartsMax = 5;

export type Decision = { readonly delayMs: number } | { readonly failedStarts: number };

export class Restarts {
  #deaths = 0;
  #failedStarts = 0;

  /**
   * `readyForMs` is undefined if the process died before it was ready. The delays are 0.1, 0.4, 1.6, 6.4, 25.6, 30, … s. A first
   * start that fails is not repeated: as with one process, there is an error to read.
   */
  onDeath(readyForMs: number | undefined): Decision {
    const isFirstStart = this.#deaths === 0 && readyForMs === undefined;
    this.#failedStarts = readyForMs === undefined ? this.#failedStarts + 1 : 0;
    this.#deaths = (readyForMs ?? 0) >= stableMs ? 1 : this.#deaths + 1;
    if (isFirstStart || this.#failedStarts === failedStartsMax) return { failedStarts: this.#failedStarts };
    return { delayMs: Math.min(capMs, firstMs * 4 ** (this.#deaths - 1)) };
  }
}
