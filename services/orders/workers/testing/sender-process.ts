/**
 * A sender in a process of its own, for tests that kill and freeze it. Its argument is JSON: the addresses of database and broker, and
 * the step at which it kills (SIGKILL) or freezes (SIGSTOP) itself.
 */
import { openDb } from "@todoke/kernel/db";
import { openHttpBroker } from "../../brokers/http/index.ts";
import type { Broker } from "../../brokers/index.ts";
import { noTelemetry } from "../sender-telemetry.ts";
import { startSender } from "../start-sender.ts";

/**
 * claimed: before the dispatch is recorded. recorded: after that. sending: past the last check. filled: the broker has returned new
 * fills, which are not recorded. fills-recorded: after that.
 */
export type Step = "claimed" | "recorded" | "sending" | "replied" | "settled" | "filled" | "fills-recorded";

export interface SenderProcessOptions {
  readonly databaseUrl: string;
  readonly brokerUrl: string;
  readonly secret: string;
  readonly dedupes: boolean;
  readonly windowMs: number;
  /** Short by default, so that another process soon claims the orders of a dead one. */
  readonly leaseMs?: number;
  readonly step?: Step;
  readonly signal?: "SIGKILL" | "SIGSTOP";
}

const options: SenderProcessOptions = JSON.parse(process.argv[2] ?? "{}");
const { databaseUrl, secret, dedupes, windowMs, leaseMs = 3_000, step, signal = "SIGKILL" } = options;

let isSignalled = false;
function reach(reached: Step): void {
  if (reached !== step || isSignalled) return;
  isSignalled = true;
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
  async send(order, { timestamp, signal }) {
    reach("sending");
    // A process frozen here cannot recall its request: only the broker's window stops it.
    const isLate = isSignalled && step === "sending";
    const outcome = await http.send(order, { timestamp, signal: isLate ? AbortSignal.timeout(60_000) : signal });
    reach("replied");
    return outcome;
  },
  async fills(id, options) {
    const found = await http.fills(id, options);
    if (found.kind === "fills" && found.fills.length > 0) reach("filled");
    return found;
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
    backoffMs: Array(100).fill(200),
  },
  telemetry: {
    ...noTelemetry,
    dispatched: () => reach("recorded"),
    transitioned: () => reach("settled"),
    filled: () => reach("fills-recorded"),
  },
  onError: (error) => console.error(error),
});
console.log("started");
