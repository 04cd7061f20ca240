/** `todoke serve` as an operator runs it: a process for each service, on servers that the environment names. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { freePort, resolveProgram, until } from "@todoke/kernel/testing";

const source = new URL("../packages/cli/todoke.js", import.meta.url);
export const todoke = resolveProgram(source);

export interface Serving extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  signal(name: NodeJS.Signals): void;
  /** Its exit code, or null if a signal ended it. */
  readonly exited: Promise<number | null>;
}

export type ServedName =
  | "account"
  | "entitlement"
  | "notification"
  | "matchmaking"
  | "points"
  | "orders"
  | "gateway-bff";

const portOf = (name: ServedName) => `${name.toUpperCase().replaceAll("-", "_")}_PORT`;

export interface Launched extends Serving {
  /** Resolves once it serves; rejects when it ends before that. */
  serves(): Promise<void>;
}

/** Resolves once it serves. What still runs when it is disposed is killed. */
export async function serve(name: ServedName, env: Record<string, string>): Promise<Serving> {
  const launched = await launch(name, env);
  await launched.serves();
  return launched;
}

/** For one that may never come to serve, for it dies or stands still before. */
export async function launch(name: ServedName, env: Record<string, string>): Promise<Launched> {
  const port = await freePort();
  // Failpoints are patched into the sources.
  const program = env.NODE_OPTIONS?.includes("--import") ? fileURLToPath(source) : todoke;
  const child = spawn(process.execPath, [program, "serve", name], {
    env: { ...env, [portOf(name)]: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (printed += text));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const url = `http://127.0.0.1:${port}`;
  return {
    pid: child.pid ?? 0,
    url,
    async serves() {
      const isUp = () => printed.includes(url) || isOver(child);
      await until(`${name} serves`, isUp, { withinMs: 150_000 }); // On a busy machine.
      if (isOver(child)) throw new Error(`${name} did not start:\n${printed}`);
    },
    signal: (signal) => void child.kill(signal),
    exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

const isOver = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;
