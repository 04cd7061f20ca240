/** The last good response per user, for minutes in which a service is down. Bounded in users, size and age. */
import { BoundedMap } from "@todoke/http";

export interface StaleCacheOptions {
  readonly usersMax?: number;
  readonly ageMaxMs?: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

interface CachedResponse {
  /** JSON. */
  readonly body: string;
  /** RFC 3339: the time of the response. */
  readonly asOf: string;
}

export interface StaleCache {
  set(userId: string, response: CachedResponse): void;
  get(userId: string): CachedResponse | undefined;
}

// A user with more than about eighty products is not cached; ten thousand users take at most 160 MB.
const bodyMaxLength = 16 * 1024;

export function staleCache(options: StaleCacheOptions = {}): StaleCache {
  const { usersMax = 10_000, ageMaxMs = 10 * 60_000, now = () => performance.now() } = options;
  const entries = new BoundedMap<string, CachedResponse & { readonly atMs: number }>(usersMax);
  return {
    set(userId, { body, asOf }) {
      if (body.length > bodyMaxLength) entries.delete(userId);
      else entries.set(userId, { body, asOf, atMs: now() });
    },
    get(userId) {
      const found = entries.get(userId);
      if (found && now() - found.atMs <= ageMaxMs) return found;
      entries.delete(userId);
      return undefined;
    },
  };
}
