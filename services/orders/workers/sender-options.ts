/** Options and calls that the workers of the broker share. */
import type { Claims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import type { WorkerOptions } from "@todoke/kernel/worker";
import type { Broker } from "../brokers/index.ts";
import type { BrokerCall, SenderTelemetry } from "./sender-telemetry.ts";

export interface SenderSettings {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  /** How long the broker has to reply. */
  readonly timeoutMs: number;
  /** Orders per second, over all senders; 0: no limit. */
  readonly perSecond: number;
  /** The delay after each failed attempt. An order has as many attempts as there are delays. */
  readonly backoffMs: readonly number[];
}

export interface SenderOptions {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  readonly telemetry: SenderTelemetry;
  readonly onError: (error: unknown) => void;
}

export type WakeOptions = Pick<WorkerOptions<never>, "wakeups" | "topic">;

/** Options of the kernel's worker. Our jobs bound their own attempts, because an unresolved order is never dead-lettered. */
export function workerOptions<Row>({ db, broker, settings, onError }: SenderOptions, claims: Claims<Row>) {
  const { concurrency, leaseMs, pollMs } = settings;
  return {
    db,
    claims,
    queue: broker.name,
    settings: { concurrency, batchMax: concurrency, leaseMs, pollMs, attemptsMax: Number.MAX_SAFE_INTEGER },
    onError,
  };
}

type BrokerCalls = Pick<Broker, "send" | "find" | "cancel" | "fills" | "measureClock">;

/** The calls of a broker, each bounded by the timeout; those for an order are measured. */
export function brokerCalls({ broker, settings, telemetry }: SenderOptions): BrokerCalls {
  const bounded = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(settings.timeoutMs)]);

  async function call<Outcome extends { readonly kind: string }>(
    name: BrokerCall,
    signal: AbortSignal,
    run: (signal: AbortSignal) => Promise<Outcome>,
  ): Promise<Outcome> {
    const startedAt = performance.now();
    const outcome = await run(bounded(signal));
    telemetry.brokerCalled(name, outcome.kind, startedAt);
    return outcome;
  }
  return {
    send: (order, { timestamp, signal }) => call("send", signal, (signal) => broker.send(order, { timestamp, signal })),
    find: (id, { lastSentAt, signal }) => call("find", signal, (signal) => broker.find(id, { lastSentAt, signal })),
    cancel: (id, signal) => call("cancel", signal, (signal) => broker.cancel(id, signal)),
    fills: (id, { after, signal }) => call("fills", signal, (signal) => broker.fills(id, { after, signal })),
    measureClock: (signal) => broker.measureClock(bounded(signal)),
  };
}
