/**
 * Grants a due reservation in the transaction that marks the event processed.
 *
 * A refusal (too many points) is permanent; any other error is retried. A dead-lettered event makes its reservation FAILED in
 * the same transaction; a redrive grants it and makes it DONE.
 */
import { type consumers, decodeEvent } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { afterCommit } from "@todoke/kernel/db";
import type { InboxOptions } from "@todoke/kernel/inbox";
import { grantReservations } from "../commands/grant-reservations.ts";
import { markFailed } from "../store/settle-reservations.ts";

const consumer = "points" satisfies keyof typeof consumers;

type Handler = Required<Pick<InboxOptions<string>, "consumer" | "read" | "effect" | "whenDead">>;

export interface OnPointReservationDueOptions {
  /** Called after a commit that wrote events. */
  readonly wake: () => void;
  /** Called after a commit that granted reservations, with their delays. */
  readonly onGranted?: (delaysMs: readonly number[]) => void;
}

/** For `openInbox`. */
export const onPointReservationDue = ({ wake, onGranted }: OnPointReservationDueOptions): Handler => ({
  consumer,
  read: readReservationId,
  async effect(tx, ids) {
    const delaysMs = await grantReservations(tx, ids);
    afterCommit(tx, wake);
    if (onGranted) afterCommit(tx, () => onGranted(delaysMs));
  },
  // The event id is the reservation's id, so an event that cannot be decoded still fails the right reservation.
  async whenDead(tx, { eventId }, reason) {
    if (await markFailed(tx, eventId, reason)) afterCommit(tx, wake);
  },
});

function readReservationId({ eventType, payload }: Envelope): string {
  if (eventType !== "PointReservationDue") throw new Error(`Unexpected event ${eventType} on points.reservations.`);
  return decodeEvent(eventType, payload).reservationId;
}
