/**
 * A circuit breaker: after `failuresMax` failures in a row nothing is sent for `openMs`, then one trial call goes through. Its
 * success closes the circuit, its failure opens it again.
 */
export interface CircuitBreakerOptions {
  readonly failuresMax?: number;
  readonly openMs?: number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

export interface CircuitBreaker {
  /** How long to wait before the next call. 0 allows this call; report its result with `succeeded` or `failed`. */
  waitMs(): number;
  succeeded(): void;
  failed(): void;
}

export function circuitBreaker(options: CircuitBreakerOptions = {}): CircuitBreaker {
  const { failuresMax = 5, openMs = 10_000, now = () => performance.now() } = options;
  let failures = 0;
  let openUntil = 0;
  let isTrial = false;
  return {
    waitMs() {
      if (failures < failuresMax) return 0;
      const leftMs = openUntil - now();
      // During the trial call the others retry soon: it may end any moment.
      if (leftMs > 0) return isTrial ? Math.min(leftMs, trialMs) : leftMs;
      // A trial call that never reports its result counts as failed after this time.
      openUntil = now() + openMs;
      isTrial = true;
      return 0;
    },
    succeeded() {
      failures = 0;
      isTrial = false;
    },
    failed() {
      isTrial = false;
      if (++failures >= failuresMax) openUntil = now() + openMs;
    },
  };
}

const trialMs = 1_000;
