import { BusUnavailable } from "@todoke/kernel/bus";
import { withTimeout as withTimeoutError } from "@todoke/kernel/worker";

/** Rejects with BusUnavailable if RabbitMQ takes longer. A later response is ignored. */
export const withTimeout = <T>(ms: number, action: string, promise: PromiseLike<T>): Promise<T> =>
  withTimeoutError(ms, promise, () => new BusUnavailable(`RabbitMQ did not ${action} within ${ms} ms`));
