/** Reserves many grants in one request. Each has its own key and is accepted or refused on its own. */
import type { Answer } from "@todoke/kernel/idempotency";
import type { Reservation, ReservePoints } from "./reserve-points.ts";

export type ReservePointsBatch = (reservations: readonly Reservation[]) => Promise<Answer>[];

/** The reservations are submitted together, so the batcher of `reservePoints` inserts them together. */
export function reservePointsBatch(reservePoints: ReservePoints): ReservePointsBatch {
  return (reservations) => reservations.map((reservation) => reservePoints(reservation));
}
