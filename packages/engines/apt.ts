/** Installs an engine where that is nobody's business but ours: as root on Debian and its kin, a container most often. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { which } from "./programs.ts";

/** RabbitMQ with Erlang is 40 MB: ten seconds on a good line. */
const installMs = 300_000;

/** Another run beside this one may be installing the same things; apt serves one at a time and turns others away. */
const lockedMs = 180_000;

/** Ours wait for each other. */
let last: Promise<unknown> = Promise.resolve();

export function canInstall(): boolean {
  return process.getuid?.() === 0 && which("apt-get") !== undefined;
}

/** Rejects with apt's own last words when it fails. */
export function installWithApt(debianPackage: string, say: (line: string) => void): Promise<void> {
  const install = ["install", "--yes", "--no-install-recommends", debianPackage];
  const done = last.then(async () => {
    say(`${debianPackage} is not installed: running apt-get update and apt-get ${install.join(" ")}`);
    // The list of packages may be missing (as in container images) or too old; where it cannot be renewed the old may do.
    await apt(["update"]).catch(() => {});
    await apt(install);
  });
  last = done.catch(() => {});
  return done;
}

async function apt(args: readonly string[]): Promise<void> {
  const deadline = Date.now() + lockedMs;
  for (;;) {
    const { code, said } = await runApt(args);
    if (code === 0) return;
    if (!said.includes("Could not get lock") || Date.now() > deadline) {
      const words = said.split("\n").filter((line) => line.startsWith("E: "));
      throw new Error(`apt-get ${args.join(" ")} failed: ${words.join(" ") || said.trim()}`);
    }
    await delay(500);
  }
}

async function runApt(args: readonly string[]): Promise<{ readonly code: number | null; readonly said: string }> {
  const child = spawn("apt-get", args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      LC_ALL: "C",
      DEBIAN_FRONTEND: "noninteractive",
      RUNLEVEL: "1", // asks Debian not to start its own service of what it installs
    },
    timeout: installMs,
  });
  let said = "";
  const hear = (text: Buffer) => {
    said = (said + text).slice(-2_000);
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  const [code] = await once(child, "close");
  return { code, said };
}
