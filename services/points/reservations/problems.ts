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
