/** Subscribes as soon as the message broker is available, so that a service can start without it. */
import type { EventBus, Subscription } from "../bus/index.ts";
import { type Backoff, startLoop } from "../worker/index.ts";

export interface SubscribeWithRetryOptions extends Subscription {
  readonly bus: Pick<EventBus, "subscribe">;
  readonly backoff?: Backoff;
  readonly onError: (error: unknown) => void;
}

// Reconnects within seconds to a broker that restarts, and asks ten times a minute during a long outage.
const reconnectBackoff: Backoff = { baseMs: 100, capMs: 5_000 };

/** Retries until subscribed; the bus then keeps the subscription. Disposing it ends the subscription or the retries. */
export function subscribeWithRetry(options: SubscribeWithRetryOptions): AsyncDisposable {
  const { bus, backoff = reconnectBackoff, onError, ...subscription } = options;
  let subscribed: AsyncDisposable | undefined;

  async function subscribe(_: AbortSignal, nextIn: (ms: number) => void): Promise<void> {
    subscribed = await bus.subscribe(subscription);
    nextIn(Number.POSITIVE_INFINITY);
  }

  const loop = startLoop(subscribe, { intervalMs: 0, task: `subscribing ${subscription.consumer}`, onError, backoff });
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await subscribed?.[Symbol.asyncDispose]();
    },
  };
}
