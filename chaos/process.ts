/** Program: one process of a service, with the settings of a run, a flaky bus and an adjustable clock. */

import dns from "node:dns";
import { defaultBackoff } from "@todoke/kernel/worker";
import { onStopSignals } from "@todoke/service";
import { openBus } from "./bus.ts";
import { flakyBus, noFaults } from "./flaky-bus.ts";
import { skewClock } from "./patches/skewed-clock.ts";
import { type Disturbance, type ProcessOptions, type Report, startFailedCode } from "./process-contract.ts";
import { getService } from "./services/index.ts";
import { backoff } from "./settings.ts";

const options: ProcessOptions = JSON.parse(process.env.CHAOS_PROCESS ?? "{}");
const faults = noFaults();
let isStopping = false;
const { lookup } = dns;
/** As if no name server answered. The last argument is the callback. */
const refuseLookup = ((...given: readonly unknown[]) => {
  const [hostname, callback] = [given[0], given.at(-1) as (error: Error) => void];
  const error = Object.assign(new Error(`getaddrinfo EAI_AGAIN ${hostname}`), {
    code: "EAI_AGAIN",
    syscall: "getaddrinfo",
  });
  setImmediate(callback, error);
}) as typeof dns.lookup;

// The parent process is gone.
process.on("disconnect", () => void (isStopping || process.kill(process.pid, "SIGKILL")));
process.on("message", ({ skewMs, resolvesNames, ...newFaults }: Disturbance) => {
  if (resolvesNames !== undefined) dns.lookup = resolvesNames ? lookup : refuseLookup;
  if (skewMs !== undefined) skewClock(skewMs);
  Object.assign(faults, newFaults);
});

if (options.skewMs !== 0) skewClock(options.skewMs);
// The backoff of the inbox and the PostgreSQL bus has no setting.
Object.assign(defaultBackoff, backoff);

const { start } = await getService(options.service).load();
const sendReport = (report: Report) => process.send?.(report);

try {
  const { kind, url } = options.bus;
  const claimsOnly = process.env.CHAOS_CLAIMS_ONLY === "true";
  const outside = {
    openBus: async (name: string) => flakyBus(await openBus(kind, { url, name }), faults, { claimsOnly }),
  };
  const running = await start(process.env, outside);
  const stop = async () => {
    isStopping = true;
    await running[Symbol.asyncDispose]();
    process.disconnect?.();
  };
  // Longer than the default, for a busy machine; how fast the work resumes is checked in runs that are timed.
  onStopSignals(stop, { deadlineMs: 240_000 });
  sendReport({ url: running.url });
} catch (error) {
  console.error(error);
  sendReport({ failedToStart: String(error) });
  process.exit(startFailedCode);
}
