/** Waits for a promise, but not for ever. */
import { BusUnavailable } from "@todoke/kernel/bus";

/** Rejects with BusUnavailable when RabbitMQ takes longer; whatever it answers later goes unheard. */
export async function within<T>(ms: number, what: string, promise: PromiseLike<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new BusUnavailable(`RabbitMQ did not ${what} within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
