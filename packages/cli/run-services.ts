/**
 * Runs services in this process, for `todoke dev` and `todoke serve`.
 */
import type { BusRequest, ProcessGroup } from "@todoke/service";
import { openBus } from "./bus.ts";
import { CommandFailed, formatError } from "./errors.ts";
import type { LoadedService } from "./select-services.ts";
import type { Env, RunningService, ServiceEntry } from "./services.ts";
import { readBusKeepMs } from "./settings.ts";
import type { StopSignal } from "./stop-signal.ts";

export interface RunningServices extends AsyncDisposable {
  readonly all: readonly { readonly entry: ServiceEntry; readonly url: string }[];
  /** Resolves when a stop is requested; rejects if a service stops unexpectedly. */
  waitForStop(): Promise<void>;
}

export interface StartOptions {
  readonly env: Env;
  readonly stop: StopSignal;
  /** The processes of the command, if it has several. */
  readonly group?: ProcessGroup;
}

/** Starts them one by one, so that their output stays in order. If one fails to start, the others are stopped. */
export async function startServices(
  loaded: readonly LoadedService[],
  { env, stop, group }: StartOptions,
): Promise<RunningServices> {
  const all: { entry: ServiceEntry; running: RunningService }[] = [];
  const drain = async () => void (await Promise.all(all.map(({ running }) => running[Symbol.asyncDispose]())));
  const keepMs = readBusKeepMs(env, []); // Errors were reported by loadServices.
  const dependencies = {
    openBus: (name: string, { url, ...options }: BusRequest) => openBus(url, name, { keepMs, ...options }),
    group,
  };
  try {
    for (const { entry, service } of loaded) {
      stop.throwIfRequested();
      const running = await service.start(env, dependencies).catch((error) => {
        throw new CommandFailed(`${entry.name} did not start: ${formatError(error)}`, { cause: error });
      });
      all.push({ entry, running });
    }
  } catch (error) {
    await drain();
    throw error;
  }
  return {
    all: all.map(({ entry, running }) => ({ entry, url: running.url })),
    waitForStop: () => Promise.race([stop.requested, ...all.map(rejectWhenStopped)]),
    [Symbol.asyncDispose]: drain,
  };
}

async function rejectWhenStopped({ entry, running }: { entry: ServiceEntry; running: RunningService }): Promise<never> {
  const why = await running.stopped.then(
    () => "",
    (error) => `: ${formatError(error)}`,
  );
  throw new CommandFailed(`${entry.name} stopped unexpectedly${why}`);
}
