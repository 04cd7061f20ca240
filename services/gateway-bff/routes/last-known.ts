/**
 * The last good answer about each user, for the minutes in which a service is down. Bounded in users, size and age: what is
 * older, or was pushed out by others, is not known any more.
 */
export interface LastKnownOptions {
  readonly usersMax?: number;
  readonly ageMaxMs?: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

interface Remembered {
  /** JSON. */
  readonly body: string;
  /** RFC 3339: when the service said so. */
  readonly asOf: string;
}

export interface LastKnown {
  remember(userId: string, answer: Remembered): void;
  recall(userId: string): Remembered | undefined;
}

// A user with more than some eighty products is not remembered; ten thousand who are take 160 MB at the very most.
const bodyMaxLength = 16 * 1024;

export function lastKnown(options: LastKnownOptions = {}): LastKnown {
  const { usersMax = 10_000, ageMaxMs = 10 * 60_000, now = () => performance.now() } = options;
  /** Whoever was remembered last is last. */
  const kept = new Map<string, Remembered & { readonly atMs: number }>();
  return {
    remember(userId, { body, asOf }) {
      kept.delete(userId);
      if (body.length > bodyMaxLength) return;
      const [oldest] = kept.keys();
      if (kept.size >= usersMax && oldest !== undefined) kept.delete(oldest);
      kept.set(userId, { body, asOf, atMs: now() });
    },
    recall(userId) {
      const found = kept.get(userId);
      if (found && now() - found.atMs <= ageMaxMs) return found;
      kept.delete(userId);
      return undefined;
    },
  };
}
