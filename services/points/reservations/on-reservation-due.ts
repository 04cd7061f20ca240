/**
 * What the worker does with a reservation whose time has come: its points are granted, and it is DONE, in the transaction
 * that marks the event processed. However often the event comes, the transaction is booked once, under the key
 * "reservation:<id>".
 *
 * A refusal (more points than can be counted) is final; any other error is tried again. What is given up is FAILED in the
 * transaction that puts the event into the dead letters; redriven from there, it is granted and DONE after all.
 */
import { randomUUIDv7 } from "node:crypto";
import { type consumers, decodeEvent } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { afterCommit, type Tx } from "@todoke/kernel/db";
import type { InboxOptions } from "@todoke/kernel/inbox";
import { traceHeaders } from "@todoke/kernel/telemetry";
import { type Booked, book, type Entry } from "../store/ledger.ts";
import { reservationNotFound } from "./problems.ts";
import { type DueReservation, lockReservations, settleFailed, settleGranted } from "./store/settle.ts";

const consumer = "points" satisfies keyof typeof consumers;

type Effect = Required<Pick<InboxOptions<string>, "consumer" | "read" | "effect" | "whenDead">>;

export interface OnReservationDue {
  /** Called after every commit that wrote events: the relay's wake-up. */
  readonly wake: () => void;
  /** Called after a commit that granted: how long each had been due. */
  readonly onGranted?: (delaysMs: readonly number[]) => void;
}

/** For `openInbox`. */
export const onReservationDue = ({ wake, onGranted }: OnReservationDue): Effect => ({
  consumer,
  read: reservationIdOf,
  async effect(tx, ids) {
    const delaysMs = await grant(tx, ids);
    afterCommit(tx, wake);
    if (onGranted) afterCommit(tx, () => onGranted(delaysMs));
  },
  // The event has the reservation's id, so even one that nobody can read ends the right reservation.
  async whenDead(tx, { eventId }, why) {
    if (await settleFailed(tx, eventId, why)) afterCommit(tx, wake);
  },
});

function reservationIdOf({ eventType, payload }: Envelope): string {
  if (eventType !== "PointReservationDue") throw new Error(`${eventType} says of no reservation that it is due`);
  return decodeEvent(eventType, payload).reservationId;
}

/** How long each of those that were granted had been due. */
async function grant(tx: Tx, ids: readonly string[]): Promise<readonly number[]> {
  const locked = await lockReservations(tx, ids);
  const due = ids.map((id) => found(locked, id)).filter(({ status }) => status === "PROCESSING" || status === "FAILED");
  if (due.length === 0) return [];
  // Alone, it goes on within the trace of its event.
  const headers = due.length === 1 ? traceHeaders() : {};
  const booked = await book(
    tx,
    due.map((reservation) => ({ ...entryOf(reservation), headers })),
  );
  const granted = due.map(({ id }, place) => ({ id, transactionId: transactionOf(booked[place]) }));
  return settleGranted(tx, granted);
}

function found(locked: ReadonlyMap<string, DueReservation>, id: string): DueReservation {
  const reservation = locked.get(id);
  if (!reservation) throw reservationNotFound(`there is no reservation ${id}`);
  return reservation;
}

/** Whoever handed it over has seen by the database's clock that its time had come. */
const entryOf = ({ id, userId, amount, executeAt, expiresAt, reason }: DueReservation): Entry => ({
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

/** Thrown, a refusal fails its batch: each is then handled alone, and only this one is given up. */
function transactionOf(booked: Booked | undefined): string {
  switch (booked?.result) {
    case "booked":
      return booked.applied.transaction.id;
    case "known":
      return booked.transactionId;
    case "refused":
      throw booked.problem;
    default:
      throw new Error(`the ledger did not book a reservation: ${booked?.detail ?? "no answer"}`);
  }
}
