/**
 * Leaves a receiver alone that has failed again and again: after `failuresMax` failures in a row nothing is sent for
 * `openMs`, then one try goes first. Its success closes the circuit, its failure opens it anew.
 */
export interface CircuitBreakerOptions {
  readonly failuresMax?: number;
  readonly openMs?: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

export interface CircuitBreaker {
  /** How long to wait before asking again; 0 lets this try through, and its end must be told. */
  waitMs(): number;
  succeeded(): void;
  failed(): void;
}

export function circuitBreaker(options: CircuitBreakerOptions = {}): CircuitBreaker {
  const { failuresMax = 5, openMs = 10_000, now = () => performance.now() } = options;
  let failures = 0;
  let openUntil = 0;
  let trying = false;
  return {
    waitMs() {
      if (failures < failuresMax) return 0;
      const leftMs = openUntil - now();
      // While one goes first the others come back soon: it may be over any moment.
      if (leftMs > 0) return trying ? Math.min(leftMs, tryingMs) : leftMs;
      // As long again, in case the one that goes first never tells its end.
      openUntil = now() + openMs;
      trying = true;
      return 0;
    },
    succeeded() {
      failures = 0;
      trying = false;
    },
    failed() {
      trying = false;
      if (++failures >= failuresMax) openUntil = now() + openMs;
    },
  };
}

const tryingMs = 1_000;
