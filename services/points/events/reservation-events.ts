/** PointReservationDue, a reservation's version 1, and PointReservationFailed, its version 2, as SQL over reservation rows. */
import { insertEventsSql } from "@todoke/kernel/outbox";

const aggregateKey = "id::text";
const fields = {
  user_id: "user_id",
  reservation_id: "id",
  point_amount: "point_amount::text",
  execute_at: "execute_at",
};

/** The event has the reservation's id, so a redispatch sends the same event. */
export const insertReservationDueSql = (from: string, { republish = false } = {}): string =>
  insertEventsSql({
    from: `${from} r order by r.execute_at, r.id`,
    subject: "points.reservations",
    eventId: "id",
    eventType: "'PointReservationDue'",
    aggregateKey,
    version: "1",
    occurredAt: "sent_at",
    fields,
    republish,
  });

/** `eventId` and `reason` are SQL expressions. */
export const insertReservationFailedSql = (from: string, { eventId, reason }: { eventId: string; reason: string }) =>
  insertEventsSql({
    from,
    subject: "points.events",
    eventId,
    eventType: "'PointReservationFailed'",
    aggregateKey,
    version: "2",
    occurredAt: "updated_at",
    fields: { ...fields, reason },
  });
