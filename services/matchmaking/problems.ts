/** All that this service refuses by itself. Clients branch on the codes: they never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const unknownMode = problem({ code: "unknown-mode", status: 404, title: "There is no such mode" });

export const ticketNotFound = problem({ code: "ticket-not-found", status: 404, title: "There is no such ticket" });

export const ticketLost = problem({
  code: "ticket-lost",
  status: 404,
  title: "Nothing is known of this ticket any more",
});

export const setByBackend = problem({
  code: "set-by-backend",
  status: 403,
  title: "In this mode only a back-end may set this",
});

export const ticketOpen = problem({
  code: "ticket-open",
  status: 409,
  title: "The user waits in this mode already, with another wish",
});

export const ticketMatched = problem({
  code: "ticket-matched",
  status: 409,
  title: "The ticket was matched before it could be cancelled",
});

export const attributesUnfit = problem({
  code: "attributes-unfit",
  status: 422,
  title: "The ticket lacks what its mode's rules ask for",
});

export const partyTooLarge = problem({
  code: "party-too-large",
  status: 422,
  title: "The mode takes no party of this size",
});
