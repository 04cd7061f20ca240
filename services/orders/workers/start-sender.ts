/** The role sender: workers that send orders, check unresolved ones and pass on cancels. */
import { requeuePostponed } from "../store/claimed-orders.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { checkUnresolved } from "./check-unresolved.ts";
import { sendOrders } from "./send-orders.ts";
import type { SenderOptions, WakeOptions } from "./sender-options.ts";

export interface StartOptions extends SenderOptions, Pick<WakeOptions, "wakeups"> {
  /** Topics signalled for new orders, for new cancel requests and when the trading state changes. */
  readonly topics?: { readonly orders: string; readonly cancels: string; readonly trading: string };
}

/** Runs until disposed: then finishes running jobs and releases the rest. */
export function startSender({ wakeups, topics, ...options }: StartOptions): AsyncDisposable {
  const { db, settings, onError } = options;
  if (settings.timeoutMs * 2 > settings.leaseMs) {
    throw new Error("the lease of an order must be at least twice the broker's timeout");
  }
  const wakeBy = (topic: string | undefined) => (wakeups && topic !== undefined ? { wakeups, topic } : {});
  const workers = [
    sendOrders({ ...options, ...wakeBy(topics?.orders) }),
    checkUnresolved(options),
    cancelOrders({ ...options, ...wakeBy(topics?.cancels) }),
  ];
  const resume = () =>
    void requeuePostponed(db)
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
