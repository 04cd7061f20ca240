/** Takes back a reservation that nobody has taken up yet. It and the scheduler never both win: the row is locked by one. */
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import { reservationNotFound, reservationNotPending } from "./problems.ts";
import { cancelReservation } from "./store/reserve.ts";

export type Cancel = (id: string, key: IdempotencyKey) => Promise<Answer>;

export const cancel =
  (db: Db): Cancel =>
  (id, key) =>
    once(db, key, async (tx) => {
      const status = await cancelReservation(tx, id);
      if (status === "none") throw reservationNotFound(`there is no reservation ${id}`);
      if (status !== undefined)
        throw reservationNotPending(`the reservation is ${status}; only a PENDING one can be cancelled`);
      return { status: 200, body: { id, status: "CANCELLED" } };
    });
