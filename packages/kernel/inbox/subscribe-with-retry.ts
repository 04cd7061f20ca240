/** Subscribes as soon as the message broker is available, so that a service can start without it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, Subscription } from "../bus/index.ts";
import { type Backoff, backoffMs } from "../worker/index.ts";

export interface SubscribeWithRetryOptions extends Subscription {
  readonly bus: Pick<EventBus, "subscribe">;
  readonly backoff?: Backoff;
  readonly onError: (error: unknown) => void;
}

// Reconnects within seconds to a broker that restarts, and asks ten times a minute during a long outage.
const defaultBackoff: Backoff = { baseMs: 100, capMs: 5_000 };

/** Retries until subscribed; the bus then keeps the subscription. Disposing it ends the subscription or the retries. */
export function subscribeWithRetry(options: SubscribeWithRetryOptions): AsyncDisposable {
  const { bus, backoff = defaultBackoff, onError, ...subscription } = options;
  const stopping = new AbortController();

  async function subscribe(): Promise<AsyncDisposable | undefined> {
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      try {
        return await bus.subscribe(subscription);
      } catch (cause) {
        onError(new Error(`${subscription.consumer} could not subscribe (attempt ${attempt})`, { cause }));
        await sleep(backoffMs(attempt, backoff), undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
    return undefined;
  }

  const subscribing = subscribe();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await (await subscribing)?.[Symbol.asyncDispose]();
    },
  };
}
