/**
 * Services at work in this process, from their start to the end of the last one. `todoke dev` and `todoke serve` differ
 * in what they set up before; this is what they share.
 */
import type { BusLog } from "@todoke/kernel/bus";
import { openBus } from "./bus.ts";
import type { Loaded } from "./choice.ts";
import { CommandFailed, reasonOf } from "./faults.ts";
import type { Env, Running, ServiceEntry } from "./services.ts";
import { busKeepMs, busUrlOf } from "./settings.ts";
import type { Stop } from "./stop.ts";

export interface AtWork extends AsyncDisposable {
  readonly all: readonly { readonly entry: ServiceEntry; readonly running: Running }[];
  /** Resolves when a stop was asked for; rejects when a service has stopped by itself. */
  untilStop(): Promise<void>;
}

/** Starts them one by one, so that what they print stays in order. All or none: a failed start stops the others. */
export async function startServices(loaded: readonly Loaded[], env: Env, stop: Stop): Promise<AtWork> {
  const all: { entry: ServiceEntry; running: Running }[] = [];
  const drain = async () => void (await Promise.all(all.map(({ running }) => running[Symbol.asyncDispose]())));
  const keepMs = busKeepMs(env, []); // Its faults were refused before.
  const outside = { openBus: (name: string, log: BusLog) => openBus(busUrlOf(env) ?? "", name, { keepMs, ...log }) };
  try {
    for (const { entry, service } of loaded) {
      stop.throwIfAsked();
      const running = await service.start(env, outside).catch((error) => {
        throw new CommandFailed(`${entry.name} did not start: ${reasonOf(error)}`, { cause: error });
      });
      all.push({ entry, running });
    }
  } catch (error) {
    await drain();
    throw error;
  }
  return {
    all,
    untilStop: () => Promise.race([stop.asked, ...all.map(stoppedByItself)]),
    [Symbol.asyncDispose]: drain,
  };
}

async function stoppedByItself({ entry, running }: { entry: ServiceEntry; running: Running }): Promise<never> {
  const why = await running.stopped.then(
    () => "",
    (error) => `: ${reasonOf(error)}`,
  );
  throw new CommandFailed(`${entry.name} stopped by itself${why}`);
}
