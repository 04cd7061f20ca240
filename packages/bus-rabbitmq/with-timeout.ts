import { BusUnavailable } from "@todoke/kernel/bus";

/** Rejects with BusUnavailable if RabbitMQ takes longer. A later response is ignored. */
export async function withTimeout<T>(ms: number, action: string, promise: PromiseLike<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(new BusUnavailable(`RabbitMQ did not ${action} within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
