/** Runs a simulator process for tests: it can be killed and restarted, and its order book read. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort, resolveProgram } from "@todoke/kernel/testing";
import type { Fault } from "../brokers/faults.ts";
import type { WireOrder } from "../brokers/http/protocol.ts";
import { type Entry, readEntries } from "./book.ts";

export interface SimulatedFill {
  readonly tradeId: string;
  readonly qty: string;
  readonly price: string;
}

export interface SimulatorProcess extends AsyncDisposable {
  readonly url: URL;
  readonly secret: string;
  /** Injects faults into the next orders, one each. */
  fault(...wanted: readonly Fault[]): Promise<void>;
  /** Fills a part of an open order. */
  fill(clientOrderId: string, fill: SimulatedFill): Promise<void>;
  entries(): Entry[];
  /** Without rejected orders; an order that was taken twice is listed twice. */
  taken(): WireOrder[];
  kill(): Promise<void>;
  /** On the same port, with the same order book. */
  start(): Promise<void>;
}

export async function startSimulator(...args: readonly string[]): Promise<SimulatorProcess> {
  const folder = mkdtempSync(join(tmpdir(), "simulator-"));
  const file = join(folder, "book.jsonl");
  const secret = "a secret of the test";
  // A port that the system gives to no other process while the simulator is down.
  const port = await freePort();
  const url = new URL(`http://127.0.0.1:${port}`);
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const program = resolveProgram(new URL("./main.ts", import.meta.url));
    const own = ["--file", file, "--secret", secret, "--port", String(port)];
    child = spawn(process.execPath, [program, ...own, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the simulator exited with ${code}`)));
    ended.catch(() => undefined); // A later exit is by kill().
    await Promise.race([once(lines, "line"), ended]);
  }

  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  await start();
  return {
    url,
    secret,
    async fault(...wanted) {
      await fetch(new URL("/faults", url), { method: "PUT", body: JSON.stringify(wanted) });
    },
    async fill(client_order_id, { tradeId: trade_id, qty, price }) {
      const body = JSON.stringify({ client_order_id, trade_id, qty, price });
      await fetch(new URL("/fills", url), { method: "PUT", body });
    },
    entries: () => readEntries(file),
    taken: () =>
      readEntries(file).flatMap((entry) =>
        entry.kind === "taken" && entry.order.status !== "rejected" ? [entry.order] : [],
      ),
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true });
    },
  };
}
