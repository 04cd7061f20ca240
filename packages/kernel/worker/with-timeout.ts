/** Rejects if the promise does not settle within `ms`; a later result is ignored. */
export async function withTimeout<T>(ms: number, promise: PromiseLike<T> | T, toError?: () => Error): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(toError?.() ?? new Error(`no response within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
