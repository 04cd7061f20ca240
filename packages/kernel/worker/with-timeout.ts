/** Rejects if the promise does not settle in time. A later result is ignored. */
export async function withTimeout<T>(
  ms: number,
  promise: T | PromiseLike<T>,
  toError = (): Error => new Error(`no response within ${ms} ms`),
): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(toError()), ms);
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
