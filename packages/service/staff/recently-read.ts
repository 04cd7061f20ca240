/** Concurrent and quickly repeated calls share one read. A failed one is not kept. */
export function recentlyRead<T>(keptMs: number, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly value: Promise<T>; readonly until: number } | undefined;
  return () => {
    const now = performance.now();
    if (last && last.until > now) return last.value;
    const value = read();
    last = { value, until: now + keptMs };
    value.catch(() => {
      last = undefined;
    });
    return value;
  };
}
