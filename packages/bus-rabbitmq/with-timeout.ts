import { BusUnavailable } from "@todoke/kernel/bus";
import { withTimeout as withKernelTimeout } from "@todoke/kernel/worker";

/** Rejects with BusUnavailable if RabbitMQ takes longer. */
export const withTimeout = <T>(ms: number, action: string, promise: PromiseLike<T>): Promise<T> =>
  withKernelTimeout(ms, promise, () => new BusUnavailable(`RabbitMQ did not ${action} within ${ms} ms`));
