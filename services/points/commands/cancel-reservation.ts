/** Cancels a PENDING reservation. The row lock decides between this and the scheduler. */
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { reservationNotFound, reservationNotPending } from "../problems.ts";
import { cancelPending } from "../store/insert-reservations.ts";

export type CancelReservation = (key: IdempotencyKey, id: string) => Promise<Answer>;

export function cancelReservation(db: Db): CancelReservation {
  return (key, id) =>
    once(db, key, async (tx) => {
      const status = await cancelPending(tx, id);
      if (status === undefined) throw reservationNotFound(`There is no reservation ${id}.`);
      if (status !== "PENDING")
        throw reservationNotPending(`The reservation is ${status}. Only a PENDING reservation can be cancelled.`);
      return { status: 200, body: { id, status: "CANCELLED" } };
    });
}
