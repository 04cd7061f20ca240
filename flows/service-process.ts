/** Runs `todoke serve` as an operator does: one process per service. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { freePort, resolveProgram, until } from "@todoke/kernel/testing";
import { startInstrumented } from "../chaos/patches/start.ts";

const source = new URL("../packages/cli/todoke.js", import.meta.url);
export const todoke = resolveProgram(source);

export interface ServiceProcess extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  signal(name: NodeJS.Signals): void;
  /** Its exit code, or null if a signal ended it. */
  readonly exited: Promise<number | null>;
}

export type ServiceName =
  | "account"
  | "entitlement"
  | "notification"
  | "matchmaking"
  | "points"
  | "orders"
  | "gateway-bff";

const portVariable = (name: ServiceName) => `${name.toUpperCase().replaceAll("-", "_")}_PORT`;

export interface LaunchedProcess extends ServiceProcess {
  /** Resolves when it serves; rejects if it exits before. */
  serves(): Promise<void>;
}

/** Starts a service; resolves when it serves. Disposing it kills the process. */
export async function serve(name: ServiceName, env: Record<string, string>): Promise<ServiceProcess> {
  const launched = await launch(name, env);
  await launched.serves();
  return launched;
}

/** Starts a service that may die or stop before it serves. */
export async function launch(name: ServiceName, env: Record<string, string>): Promise<LaunchedProcess> {
  const port = await freePort();
  const isInstrumented = Object.keys(env).some((key) => key.startsWith("CHAOS_"));
  const { execArgv, program } = isInstrumented ? startInstrumented(source, env) : { execArgv: [], program: todoke };
  const child = spawn(process.execPath, [...execArgv, program, "serve", name], {
    env: { ...env, [portVariable(name)]: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const url = `http://127.0.0.1:${port}`;
  return {
    pid: child.pid ?? 0,
    url,
    async serves() {
      const isUp = () => output.includes(url) || hasExited(child);
      await until(`${name} serves`, isUp, { withinMs: 150_000 }); // On a busy machine.
      if (hasExited(child)) throw new Error(`${name} did not start:\n${output}`);
    },
    signal: (signal) => void child.kill(signal),
    exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

const hasExited = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;
