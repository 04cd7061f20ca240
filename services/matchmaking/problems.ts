/** The problems of this service. Clients branch on the codes, so they never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const unknownMode = problem({ code: "unknown-mode", status: 404, title: "There is no such mode" });

export const ticketNotFound = problem({ code: "ticket-not-found", status: 404, title: "There is no such ticket" });

export const ticketLost = problem({ code: "ticket-lost", status: 404, title: "The ticket was lost" });

export const setByBackend = problem({
  code: "set-by-backend",
  status: 403,
  title: "In this mode only a back-end may set this",
});

export const ticketOpen = problem({
  code: "ticket-open",
  status: 409,
  title: "The user has another open ticket in this mode",
});

export const ticketMatched = problem({
  code: "ticket-matched",
  status: 409,
  title: "The ticket was matched before it could be cancelled",
});

export const attributesUnfit = problem({
  code: "attributes-unfit",
  status: 422,
  title: "The ticket lacks attributes that its mode requires",
});

export const partyTooLarge = problem({
  code: "party-too-large",
  status: 422,
  title: "The party is too large for the mode",
});
