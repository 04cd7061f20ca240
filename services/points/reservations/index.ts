/**
 * Grants booked ahead, once and recurring: each happens exactly once, and none before its time by the database's clock.
 *
 * A reservation is a row. The scheduler finds those that are due and tells the worker by way of the outbox and the bus; the
 * worker books the points and ends the reservation in one commit. Everything may run twice, in any number of processes.
 */
export { type Cancel, cancel } from "./cancel.ts";
export { type Cron, CronFault, parseCron } from "./cron.ts";
export { onReservationDue } from "./on-reservation-due.ts";
export { type Reservation, type Reserve, reserve } from "./reserve.ts";
export { scheduler } from "./scheduler.ts";
