/** Rejects if the promise does not settle in time. */
export async function withTimeout<T>(ms: number, promise: PromiseLike<T> | undefined): Promise<T | undefined> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
