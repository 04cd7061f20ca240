/**
 * SIGTERM and SIGINT begin an orderly stop, once. A second signal exits with code 1 at once, and so does the deadline: a
 * process that cannot stop in order must not look as if it had.
 */

export interface StopOptions {
  /** Shorter than the orchestrator's own deadline, usually 30 s, after which it kills the process. */
  readonly deadlineMs?: number;
}

// Ctrl-C reaches every process of the terminal, and npm forwards it too: a signal this soon is the same one.
const echoMs = 500;

/** The process exits with code 0 when `stop` has closed everything that keeps it alive. */
export function onStopSignals(stop: () => Promise<unknown>, { deadlineMs = 25_000 }: StopOptions = {}): void {
  let stoppedAt: number | undefined;
  const exitLate = () => {
    console.error(
      `The stop took longer than ${deadlineMs / 1_000} s. The process exits; others claim its jobs when their leases expire.`,
    );
    process.exit(1);
  };
  const onSignal = () => {
    if (stoppedAt === undefined) {
      stoppedAt = performance.now();
      setTimeout(exitLate, deadlineMs).unref();
      void stop(); // A rejection ends the process as any unhandled one does: with its stack and code 1.
    } else if (performance.now() - stoppedAt > echoMs) {
      process.exit(1);
    }
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
