/**
 * One process of one service, as `todoke serve` would run it, with the times of a run, a bus that can be told to shake,
 * and a clock that can be wrong. It tells its owner where it serves, and dies when it is told to.
 */

import { defaultBackoff } from "@todoke/kernel/worker";
import { onStopSignals } from "@todoke/service";
import { openBus } from "./bus.ts";
import { type BusFaults, flakyBus, steady } from "./flaky-bus.ts";
import { skewClock } from "./patches/skewed-clock.ts";
import { couldNotStart, type ProcessOptions, type Report } from "./process-contract.ts";
import { serviceNamed } from "./services/index.ts";
import { backoff } from "./settings.ts";

const options: ProcessOptions = JSON.parse(process.env.CHAOS_PROCESS ?? "{}");
const faults = steady();
let isStopping = false;
// Whoever started it is gone, and nobody else knows of it.
process.on("disconnect", () => void (isStopping || process.kill(process.pid, "SIGKILL")));
process.on("message", (told: Partial<BusFaults>) => void Object.assign(faults, told));

if (options.skewMs !== 0) skewClock(options.skewMs);
// The one time that is no setting: how long the inbox and the PostgreSQL bus put off what failed.
Object.assign(defaultBackoff, backoff);

const { start } = await serviceNamed(options.service).load();
const tell = (report: Report) => process.send?.(report);

try {
  const { kind, url } = options.bus;
  const outside = { openBus: async (name: string) => flakyBus(await openBus(kind, { url, name }), faults) };
  const running = await start(process.env, outside);
  const stop = async () => {
    isStopping = true;
    await running[Symbol.asyncDispose]();
    process.disconnect?.();
  };
  // Longer than the default, for a busy machine; how fast the work resumes is checked in runs that are timed.
  onStopSignals(stop, { deadlineMs: 240_000 });
  tell({ url: running.url });
} catch (error) {
  console.error(error);
  tell({ failedToStart: String(error) });
  process.exit(couldNotStart);
}
