/** Starts a contender's process and receives its messages. Disposing it kills the process. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { RoleTask } from "./process.ts";

export interface Child extends AsyncDisposable {
  /** Resolves with the value of this message; rejects if the process exits first. */
  message(name: string): Promise<unknown>;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
}

/** More than twice the longest role: a process that runs longer hangs. */
const runMsMax = 15 * 60_000;

const program = fileURLToPath(new URL("./process.ts", import.meta.url));

export function startRole(task: RoleTask): Child {
  const child = fork(program, [JSON.stringify(task)], { execArgv: [], serialization: "advanced" });
  const exited = once(child, "exit");
  const killTimer = setTimeout(() => child.kill("SIGKILL"), runMsMax);
  const messages = new Map<string, PromiseWithResolvers<unknown>>();
  const messageFor = (name: string) => {
    const message = messages.get(name) ?? Promise.withResolvers<unknown>();
    messages.set(name, message);
    message.promise.catch(() => {}); // Each caller of `message` handles the rejection itself.
    return message;
  };
  child.on("message", ({ name, value }: { name: string; value: unknown }) => messageFor(name).resolve(value));
  void exited.then(([code, signal]) => {
    clearTimeout(killTimer);
    const error = new Error(`${task.contender}, ${task.role}: exited (${signal ?? code}) too early`);
    for (const name of ["ready", "holding", "result"]) messageFor(name).reject(error);
  });
  async function kill(): Promise<void> {
    child.kill("SIGKILL");
    await exited;
  }
  return { message: (name) => messageFor(name).promise, kill, [Symbol.asyncDispose]: kill };
}

/** Runs a role and returns its result. */
export async function runRole(task: RoleTask): Promise<unknown> {
  await using child = startRole(task);
  return await child.message("result");
}
