/** The role sender: workers that send orders, check unresolved ones, pass on cancels and record fills. */
import { requeuePostponed } from "../store/claimed-orders.ts";
import { cancelOrders } from "./cancel-orders.ts";
import { checkUnresolved } from "./check-unresolved.ts";
import { followOrders } from "./follow-orders.ts";
import { sendOrders } from "./send-orders.ts";
import type { SenderOptions, SenderSettings, WakeOptions } from "./sender-options.ts";

type Timing = Pick<SenderSettings, "leaseMs" | "pollMs">;

export interface StartOptions extends SenderOptions, Pick<WakeOptions, "wakeups"> {
  /** Lease and poll of the other workers; default: those of the sender. */
  readonly timings?: { readonly checker?: Timing; readonly canceller?: Timing; readonly follower?: Timing };
  /** Topics signalled for new orders, for new cancel requests and when the trading state changes. */
  readonly topics?: { readonly orders: string; readonly cancels: string; readonly trading: string };
}

/** Runs until disposed: then finishes running jobs and releases the rest. */
export function startSender({ wakeups, topics, timings, ...options }: StartOptions): AsyncDisposable {
  const { db, onError } = options;
  const withTiming = (timing: Timing | undefined): SenderOptions => {
    const settings = { ...options.settings, ...(timing && { leaseMs: timing.leaseMs, pollMs: timing.pollMs }) };
    if (settings.timeoutMs * 2 > settings.leaseMs) {
      throw new Error("the lease of an order must be at least twice the broker's timeout");
    }
    return { ...options, settings };
  };
  const wakeBy = (topic: string | undefined) => (wakeups && topic !== undefined ? { wakeups, topic } : {});
  const workers = [
    sendOrders({ ...withTiming(undefined), ...wakeBy(topics?.orders) }),
    checkUnresolved(withTiming(timings?.checker)),
    cancelOrders({ ...withTiming(timings?.canceller), ...wakeBy(topics?.cancels) }),
    followOrders(withTiming(timings?.follower)),
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
