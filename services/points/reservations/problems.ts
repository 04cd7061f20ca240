/** What reservations and recurring grants are refused for. Codes never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const reservationNotFound = problem({
  code: "reservation-not-found",
  status: 404,
  title: "There is no such reservation",
});

export const reservationNotPending = problem({
  code: "reservation-not-pending",
  status: 409,
  title: "The reservation is no longer pending",
});

export const scheduleNotFound = problem({
  code: "schedule-not-found",
  status: 404,
  title: "There is no such recurring grant",
});

export const scheduleNameTaken = problem({
  code: "schedule-name-taken",
  status: 409,
  title: "Another recurring grant has this name",
});

export const scheduleEnded = problem({ code: "schedule-ended", status: 409, title: "The recurring grant has ended" });

export const scheduleUnreadable = problem({
  code: "schedule-unreadable",
  status: 422,
  title: "When the recurring grant comes round cannot be read",
});
