/**
 * What the roles sender and reconciler start: the worker that sends, the one that asks about orders in doubt, the one that
 * cancels, and the comparison of our books with the broker's.
 */
import type { Db } from "@todoke/kernel/db";
import type { Wakeups } from "@todoke/kernel/worker";
import type { Broker } from "../brokers/index.ts";
import { askBroker } from "./ask-broker.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { type SenderSettings, sendOrders } from "./send-orders.ts";
import { freePutOff } from "./store.ts";
import { type Tell, tellNobody } from "./tell.ts";

export { type Mismatch, startReconciler } from "./reconcile.ts";
export { type Tell, tellNobody } from "./tell.ts";

/** The waits of the seed, one for each attempt; the last attempt ends the order. */
export const usualWaitsMs = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];

export interface SenderOptions {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  readonly wakeups?: Wakeups;
  /** Whose signals tell of new orders, of new cancel requests, and of a change of the trading state. */
  readonly topics?: { readonly orders: string; readonly cancels: string; readonly trading: string };
  readonly tell?: Tell;
  readonly onError: (error: unknown) => void;
}

/** Works until disposed: then finishes what runs and gives the rest back. */
export function startSender({ wakeups, topics, tell = tellNobody, ...options }: SenderOptions): AsyncDisposable {
  const { db, settings, onError } = options;
  if (settings.timeoutMs * 2 > settings.leaseMs) {
    throw new Error("an order's lease must be at least twice as long as the broker has for an answer");
  }
  const woken = (topic: string | undefined) => (wakeups && topic !== undefined ? { wakeups, topic } : {});
  const sender = sendOrders({ ...options, tell, ...woken(topics?.orders) });
  const asker = askBroker({ ...options, tell });
  const canceller = cancelOrders({ ...options, tell, ...woken(topics?.cancels) });
  const workers = [sender, asker, canceller];
  const resume = () =>
    void freePutOff(db)
      .then(() => workers.forEach((each) => void each.wake()))
      .catch(onError);
  const unsubscribe = topics && wakeups?.on(topics.trading, resume);
  for (const each of workers) each.start();
  return {
    async [Symbol.asyncDispose]() {
      unsubscribe?.();
      await Promise.all(workers.map((each) => each.stop()));
    },
  };
}
