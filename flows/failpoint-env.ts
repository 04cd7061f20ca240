/** What a process is started with that is to die, or to fall asleep, at an exact step, or that has a wrong clock. */
import { spawnSync } from "node:child_process";

const instrument = new URL("../chaos/patches/instrument.ts", import.meta.url).href;
const instrumented = { NODE_OPTIONS: `--import ${instrument}` };

export interface Step {
  /** Of a failpoint (docs/chaos.md). */
  readonly name: string;
  /** It dies, or falls asleep, when it gets there for the n-th time. */
  readonly hit: number;
}

export const failpointEnv = (action: "kill" | "stop", { name, hit }: Step) => ({
  ...instrumented,
  CHAOS_FAILPOINTS: JSON.stringify([{ name, action, hit }]),
});

export const clockSkewEnv = (byMs: number) => ({ ...instrumented, CHAOS_SKEW_MS: String(byMs) });

/** Whether it sleeps. One that is gone does not. */
export function isStopped(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.startsWith("T");
}
