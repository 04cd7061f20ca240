/** A stop by Ctrl-C or SIGTERM. The first signal drains; `onStopSignals` of @todoke/service handles a second one. */
import { printError } from "./output.ts";

export interface StopSignal {
  /** Resolves when a stop is requested. */
  readonly requested: Promise<void>;
  /** Throws Stopped once a stop is requested. Call it between the steps of a start. */
  throwIfRequested(): void;
}

/** A stop was requested during the start. This is not a failure. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}

export async function listenForStop(): Promise<StopSignal> {
  // Imported here because it loads a web framework, which `todoke help` does not need.
  const { onStopSignals } = await import("@todoke/service");
  const requested = Promise.withResolvers<void>();
  let stopping = false;
  onStopSignals(async () => {
    stopping = true;
    printError("Stopping: work in progress is finished first. Press Ctrl-C again to stop at once.");
    requested.resolve();
  });
  return {
    requested: requested.promise,
    throwIfRequested() {
      if (stopping) throw new Stopped();
    },
  };
}
