/** Environment of a process that is killed or stopped at a failpoint, or has a wrong clock. */
import { spawnSync } from "node:child_process";

export interface Step {
  /** Name of a failpoint (docs/chaos.md). */
  readonly name: string;
  /** The action happens when the failpoint is reached for the n-th time. */
  readonly hit: number;
  /** The process works in transactions where it can; by default it works by claims, which have more failpoints. */
  readonly inTransactions?: boolean;
}

export const failpointEnv = (action: "kill" | "stop", { name, hit, inTransactions = false }: Step) => ({
  CHAOS_CLAIMS_ONLY: String(!inTransactions),
  CHAOS_FAILPOINTS: JSON.stringify([{ name, action, hit }]),
});

export const clockSkewEnv = (byMs: number) => ({ CHAOS_SKEW_MS: String(byMs) });

/** Whether the process is stopped (SIGSTOP). */
export function isStopped(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.startsWith("T");
}
