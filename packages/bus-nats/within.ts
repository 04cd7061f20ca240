/** Waits for a promise, but no longer than told. */
export async function within<T>(ms: number, promise: PromiseLike<T> | undefined): Promise<T | undefined> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
