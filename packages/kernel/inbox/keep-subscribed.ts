/**
 * Subscribes as soon as the bus can be asked, and tries for ever until then: a broker that is away while the service
 * starts must not keep the service from starting. Once subscribed, the subscription looks after itself.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, Subscription } from "../bus/index.ts";
import { type Backoff, backoffMs } from "../worker/index.ts";

export interface KeepSubscribedOptions extends Subscription {
  readonly bus: Pick<EventBus, "subscribe">;
  readonly backoff?: Backoff;
  readonly onError: (error: unknown) => void;
}

// A broker that comes back is met within seconds; one that is away for hours is asked ten times a minute.
const usualBackoff: Backoff = { baseMs: 100, capMs: 5_000 };

/** Disposing it ends the subscription, or the tries to get one. */
export function keepSubscribed(options: KeepSubscribedOptions): AsyncDisposable {
  const { bus, backoff = usualBackoff, onError, ...subscription } = options;
  const stopping = new AbortController();

  async function subscribed(): Promise<AsyncDisposable | undefined> {
    for (let tries = 1; !stopping.signal.aborted; tries++) {
      try {
        return await bus.subscribe(subscription);
      } catch (cause) {
        onError(new Error(`${subscription.consumer} could not subscribe yet (try ${tries})`, { cause }));
        await sleep(backoffMs(tries, backoff), undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
    return undefined;
  }

  const subscribing = subscribed();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await (await subscribing)?.[Symbol.asyncDispose]();
    },
  };
}
