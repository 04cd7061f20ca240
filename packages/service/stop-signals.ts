/**
 * SIGTERM and SIGINT begin an orderly stop, once. A second one, from somebody who will not wait, ends the process with
 * code 1, and so does the deadline: a process that cannot stop must not look as if it had.
 */

export interface StopOptions {
  /** Shorter than the orchestrator's patience (30 s is usual), or it kills us first. */
  readonly deadlineMs?: number;
}

// Ctrl-C reaches every process of the terminal, and npm passes it on as well: the echo is not a second wish.
const echoMs = 500;

/** The process ends by itself, with code 0, when `stop` has closed everything that kept it alive. */
export function onStopSignals(stop: () => Promise<unknown>, { deadlineMs = 25_000 }: StopOptions = {}): void {
  let askedAt: number | undefined;
  const hear = () => {
    if (askedAt === undefined) {
      askedAt = performance.now();
      setTimeout(() => process.exit(1), deadlineMs).unref();
      void stop(); // A rejection ends the process as any unhandled one does: with its stack and code 1.
    } else if (performance.now() - askedAt > echoMs) {
      process.exit(1);
    }
  };
  process.on("SIGTERM", hear);
  process.on("SIGINT", hear);
}
