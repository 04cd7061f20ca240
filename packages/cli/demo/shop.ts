/** Runs the arena shop as a process of its own, and starts it again when it dies: it continues its purchases by itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { printError, styled } from "../output.ts";
import { Restarts } from "../processes/restarts.ts";
import type { Env } from "../services.ts";

/** The shop ends with us, also after a kill -9. It has no need of the channel otherwise. */
const endWithParent = `data:text/javascript,process.once("disconnect",()=>process.exit());process.channel.unref()`;

export interface Shop extends AsyncDisposable {
  readonly pid: number | undefined;
  /** Undefined while it does not run. */
  readonly url: URL | undefined;
  /** Resolves when it runs for the first time; rejects if it cannot be started. */
  readonly ready: Promise<void>;
}

export function startShop(env: Env): Shop {
  const program = fileURLToPath(import.meta.resolve("@todoke/arena-shop"));
  const restarts = new Restarts();
  const [ready, stop] = [Promise.withResolvers<void>(), new AbortController()];
  let url: URL | undefined;
  let pid: number | undefined;
  let starts = 0;

  /** Until it ends. Returns how it ended, and when it was ready. */
  async function run() {
    const args = ["--disable-warning=ExperimentalWarning", "--import", endWithParent, program];
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit", "ipc"] });
    pid = child.pid;
    const onStop = () => child.kill("SIGTERM");
    const onExit = () => child.kill("SIGKILL");
    stop.signal.addEventListener("abort", onStop, { once: true });
    process.once("exit", onExit);
    let readyAt: number | undefined;
    if (!child.stdout) throw new Error("the arena shop has no output");
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, port] = /^Listening on (\d+)$/.exec(line) ?? [];
      if (!port) return;
      url = new URL(`http://127.0.0.1:${port}`);
      readyAt = performance.now();
      if (starts++ > 0) printError(`The arena shop runs again, as process ${pid}.`);
      ready.resolve();
    });
    const [code, signal] = await once(child, "close");
    url = undefined;
    stop.signal.removeEventListener("abort", onStop);
    process.off("exit", onExit);
    return { how: signal ? `was killed by ${signal}` : `exited with code ${code}`, readyAt };
  }

  async function keepRunning(): Promise<void> {
    while (!stop.signal.aborted) {
      const { how, readyAt } = await run();
      if (stop.signal.aborted) return;
      const decision = restarts.onDeath(readyAt === undefined ? undefined : performance.now() - readyAt);
      if ("failedStarts" in decision) return ready.reject(new Error(`the arena shop ${how} before it was ready`));
      const mark = styled("yellow", "!", process.stderr);
      printError(`${mark} the arena shop ${how}. It starts again in ${decision.delayMs / 1_000} s.`);
      await sleep(decision.delayMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  }

  const ended = keepRunning().catch(ready.reject);
  return {
    get url() {
      return url;
    },
    get pid() {
      return pid;
    },
    ready: ready.promise,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await ended;
    },
  };
}
