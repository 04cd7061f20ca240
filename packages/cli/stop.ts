/** A wish to stop, by Ctrl-C or SIGTERM. The first one drains; @todoke/service's `onStopSignals` says what ends it sooner. */
import { complain } from "./output.ts";

export interface Stop {
  /** Resolves when a stop was asked for. */
  readonly asked: Promise<void>;
  /** Throws Stopped from then on: for the steps of a start that need not be taken any more. */
  throwIfAsked(): void;
}

/** A stop was asked for while starting: not a failure, there is just nothing more to do. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}

export async function hearStop(): Promise<Stop> {
  // Loaded here, because it brings a web framework along that `todoke help` can do without.
  const { onStopSignals } = await import("@todoke/service");
  const asked = Promise.withResolvers<void>();
  let stopping = false;
  onStopSignals(async () => {
    stopping = true;
    complain("Stopping: finishing what is under way. Once more stops at once.");
    asked.resolve();
  });
  return {
    asked: asked.promise,
    throwIfAsked() {
      if (stopping) throw new Stopped();
    },
  };
}
