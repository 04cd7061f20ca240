/**
 * Books what has run out: points of lots whose time is up, and holds that nobody ended. Each once, about a second after its
 * time, from any number of processes.
 *
 * Nobody waits for it to learn the truth: a read compares with the clock itself, and a change of the user books the same
 * first. This makes the transaction and the event of users whom nobody touches.
 */
import { type Db, isUnavailable, transaction } from "@todoke/kernel/db";
import { periodically } from "@todoke/kernel/worker";
import { bookWhatHasRunOut } from "./store/ledger.ts";
import { selectUsersToSettle } from "./store/users-to-settle.ts";

// So few that no command waits long for a user among them.
const usersMax = 50;

export interface ExpiryOptions {
  readonly everyMs?: number;
  /** Hears of every batch that wrote events: the relay's wake-up. */
  readonly onCommitted: () => void;
  readonly onError: (error: unknown) => void;
}

export function keepExpiring(db: Db, options: ExpiryOptions): AsyncDisposable {
  const { everyMs = 1_000, onError } = options;
  return periodically((stopping) => expireDue(db, options, stopping), {
    everyMs,
    what: "booking the points that have run out",
    onError,
  });
}

async function expireDue(db: Db, options: ExpiryOptions, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const userIds = await selectUsersToSettle(db, usersMax);
    if (userIds.length === 0) return;
    const booked = await settle(db, userIds).catch(() => settleEach(db, userIds, options));
    if (booked === 0) return; // Others were faster.
    options.onCommitted();
  }
}

const settle = (db: Db, userIds: readonly string[]): Promise<number> =>
  transaction(db, (tx) => bookWhatHasRunOut(tx, userIds));

/** One by one: a user whose points cannot be booked keeps nobody else's from it. Says how many transactions that took. */
async function settleEach(db: Db, userIds: readonly string[], { onError }: ExpiryOptions): Promise<number> {
  let booked = 0;
  for (const userId of userIds) {
    booked += await settle(db, [userId]).catch((cause) => {
      if (isUnavailable(cause)) throw cause;
      onError(new Error(`what has run out of ${userId} could not be booked`, { cause }));
      return 0;
    });
  }
  return booked;
}
