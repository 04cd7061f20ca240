/**
 * Grants due reservations and makes them DONE, in one transaction. A grant has the key "reservation:<id>", so it is posted
 * once, however often the reservation is dispatched.
 */
import { randomUUIDv7 } from "node:crypto";
import { type Db, type Tx, transaction } from "@todoke/kernel/db";
import { traceHeaders } from "@todoke/kernel/telemetry";
import type { ChangeRequest } from "../ledger/changes.ts";
import { reservationNotFound } from "../problems.ts";
import {
  type DueReservation,
  lockDueReservations,
  lockReservations,
  markGranted,
} from "../store/settle-reservations.ts";
import { type PostResult, postChanges } from "./post-changes.ts";

/** Grants dispatched reservations. Returns the delay of each granted one since it was due. */
export async function grantReservations(tx: Tx, ids: readonly string[]): Promise<readonly number[]> {
  const locked = await lockReservations(tx, ids);
  const dispatched = ids
    .map((id) => locked.get(id) ?? rejectUnknown(id))
    .filter(({ status }) => status === "PROCESSING" || status === "FAILED");
  return grantLocked(tx, dispatched);
}

/** Grants reservations that are due and not dispatched, oldest first. If one is refused, nothing has happened. */
export const grantDueReservations = (db: Db, limit: number): Promise<readonly number[]> =>
  transaction(db, async (tx) => grantLocked(tx, await lockDueReservations(tx, limit)));

async function grantLocked(tx: Tx, due: readonly DueReservation[]): Promise<readonly number[]> {
  if (due.length === 0) return [];
  // Only a single reservation continues the trace of its event.
  const headers = due.length === 1 ? traceHeaders() : {};
  const posted = await postChanges(
    tx,
    due.map((reservation) => ({ ...toRequest(reservation), headers })),
  );
  const granted = due.map(({ id }, index) => ({ id, transactionId: postedTransaction(posted[index]) }));
  return markGranted(tx, granted);
}

function rejectUnknown(id: string): never {
  throw reservationNotFound(`There is no reservation ${id}.`);
}

/** `notBefore`: the scheduler found the reservation due by the database's clock, which may have stepped back since. */
const toRequest = ({ id, userId, amount, executeAt, expiresAt, reason }: DueReservation): ChangeRequest => ({
  change: {
    kind: "GRANT",
    id: randomUUIDv7(),
    idempotencyKey: `reservation:${id}`,
    userId,
    amount,
    expiresAt,
    notBefore: executeAt,
    reason: reason ?? undefined,
    source: "reservation",
    sourceId: id,
  },
});

/** A thrown refusal fails the batch. The inbox then handles each event alone, and only the refused one is dead-lettered. */
function postedTransaction(posted: PostResult | undefined): string {
  switch (posted?.result) {
    case "posted":
      return posted.applied.transaction.id;
    case "replayed":
      return posted.transactionId;
    case "refused":
      throw posted.problem;
    default:
      throw new Error(`A reservation was not granted: ${posted?.problem.message ?? "no result"}`);
  }
}
