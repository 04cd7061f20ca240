/**
 * A sender as a process of its own, for tests that kill and freeze it. Told by one argument, JSON: where its database and its
 * broker are, and at which step it is to end itself (SIGKILL) or to stand still (SIGSTOP).
 */
import { openDb } from "@todoke/kernel/db";
import { openHttpBroker } from "../brokers/http/index.ts";
import type { Broker } from "../brokers/index.ts";
import { startSender, tellNobody } from "./index.ts";

/** claimed: before it is written down that bytes may leave. asked: after that. sending: past the last check. */
export type Step = "claimed" | "asked" | "sending" | "answered" | "settled";

export interface SenderProcessOptions {
  readonly databaseUrl: string;
  readonly brokerUrl: string;
  readonly secret: string;
  readonly dedupes: boolean;
  readonly windowMs: number;
  /** Short, unless told otherwise: what a dead one held is soon another's. */
  readonly leaseMs?: number;
  readonly step?: Step;
  readonly signal?: "SIGKILL" | "SIGSTOP";
}

const options: SenderProcessOptions = JSON.parse(process.argv[2] ?? "{}");
const { databaseUrl, secret, dedupes, windowMs, leaseMs = 3_000, step, signal = "SIGKILL" } = options;

let isOver = false;
function reach(reached: Step): void {
  if (reached !== step || isOver) return;
  isOver = true;
  process.kill(process.pid, signal);
}

const url = new URL(options.brokerUrl);
const http = openHttpBroker({ url, secret, dedupes, windowMs, limitsSlippage: false, marginMs: 200 });
const broker: Broker = {
  ...http,
  clock() {
    reach("claimed");
    return http.clock();
  },
  async send(order, about) {
    reach("sending");
    // One that was frozen here has its request out of its hands already: what stops it then is the broker's window alone.
    const isLate = isOver && step === "sending";
    const outcome = await http.send(order, isLate ? { ...about, signal: AbortSignal.timeout(60_000) } : about);
    reach("answered");
    return outcome;
  },
};
startSender({
  db: openDb({ url: databaseUrl, schema: "orders" }),
  broker,
  settings: {
    concurrency: 4,
    leaseMs,
    pollMs: 100,
    timeoutMs: 1_000,
    perSecond: 0,
    backoff: { waitsMs: Array(100).fill(200) },
  },
  tell: { ...tellNobody, departed: () => reach("asked"), ended: () => reach("settled") },
  onError: (error) => console.error(error),
});
console.log("started");
