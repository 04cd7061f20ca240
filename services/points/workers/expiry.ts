/**
 * Posts expired lots and holds about a second after they expire, from any number of processes.
 *
 * Balances are correct without it: reads compare with the clock, and every change of a user posts the user's expirations
 * first. This worker posts them, and emits their events, for users that nothing else changes.
 */
import { type Db, isUnavailable, transaction } from "@todoke/kernel/db";
import { runBatches, startLoop } from "@todoke/kernel/worker";
import { postExpirations } from "../commands/post-changes.ts";
import { selectUsersWithExpired } from "../store/users-with-expired.ts";

// Few, so that no command waits long for one of these users.
const usersMax = 50;

export interface ExpiryOptions {
  readonly intervalMs?: number;
  /** Called after every batch that wrote events. */
  readonly onCommitted: () => void;
  readonly onError: (error: unknown) => void;
}

export function startExpiry(db: Db, options: ExpiryOptions): AsyncDisposable {
  const { intervalMs = 1_000, onError } = options;
  async function expireDue(): Promise<number> {
    const userIds = await selectUsersWithExpired(db, usersMax);
    if (userIds.length === 0) return 0;
    const posted = await expireUsers(db, userIds).catch(() => expireEach(db, userIds, options));
    if (posted === 0) return 0; // Another process posted them.
    options.onCommitted();
    return userIds.length;
  }
  const task = "posting expired points";
  return startLoop((stopping) => runBatches(expireDue, { batchMax: usersMax, stopping }), {
    intervalMs,
    task,
    onError,
  });
}

const expireUsers = (db: Db, userIds: readonly string[]): Promise<number> =>
  transaction(db, (tx) => postExpirations(tx, userIds));

/** One by one, so that a user who fails does not block the others. Returns the number of transactions. */
async function expireEach(db: Db, userIds: readonly string[], { onError }: ExpiryOptions): Promise<number> {
  let posted = 0;
  for (const userId of userIds) {
    posted += await expireUsers(db, [userId]).catch((cause) => {
      if (isUnavailable(cause)) throw cause;
      onError(new Error(`expired points of ${userId} could not be posted`, { cause }));
      return 0;
    });
  }
  return posted;
}
