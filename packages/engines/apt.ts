/** Installs an engine with apt. Only root on Debian or a derivative can do that; most often it is a container. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { findExecutable } from "./find-binary.ts";

/** RabbitMQ with Erlang is 40 MB: ten seconds on a fast connection. */
const installTimeoutMs = 300_000;

/** apt rejects a second process while another test run installs. */
const lockWaitMs = 180_000;

/** Installations of this process run one after the other. */
let previousInstall: Promise<unknown> = Promise.resolve();

export function canInstallWithApt(): boolean {
  return process.getuid?.() === 0 && findExecutable("apt-get") !== undefined;
}

/** Rejects with apt's error lines if it fails. */
export function installWithApt(debianPackage: string, log: (line: string) => void): Promise<void> {
  const install = ["install", "--yes", "--no-install-recommends", debianPackage];
  const done = previousInstall.then(async () => {
    log(`${debianPackage} is not installed: running apt-get update and apt-get ${install.join(" ")}`);
    // The package list may be missing (as in container images) or too old. If the update fails, the old list may do.
    await apt(["update"]).catch(() => {});
    await apt(install);
  });
  previousInstall = done.catch(() => {});
  return done;
}

async function apt(args: readonly string[]): Promise<void> {
  const deadline = Date.now() + lockWaitMs;
  for (;;) {
    const { code, output } = await runApt(args);
    if (code === 0) return;
    if (!output.includes("Could not get lock") || Date.now() > deadline) {
      const errors = output.split("\n").filter((line) => line.startsWith("E: "));
      throw new Error(`apt-get ${args.join(" ")} failed: ${errors.join(" ") || output.trim()}`);
    }
    await delay(500);
  }
}

async function runApt(args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn("apt-get", args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      LC_ALL: "C",
      DEBIAN_FRONTEND: "noninteractive",
      RUNLEVEL: "1", // keeps Debian from starting the installed service
    },
    timeout: installTimeoutMs,
  });
  let output = "";
  const collect = (text: Buffer) => {
    output = (output + text).slice(-2_000);
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const [code] = await once(child, "close");
  return { code, output };
}
