/** The problems of this service. Clients branch on the codes, so they never change; docs/errors.md lists them. */
import { problem } from "@todoke/kernel/problem";

export const unknownMode = problem(404, "unknown-mode", "There is no such mode");
export const ticketNotFound = problem(404, "ticket-not-found", "There is no such ticket");
export const ticketLost = problem(404, "ticket-lost", "The ticket was lost");
export const setByBackend = problem(403, "set-by-backend", "In this mode only a back-end may set this");
export const ticketOpen = problem(409, "ticket-open", "The user has another open ticket in this mode");
export const ticketMatched = problem(409, "ticket-matched", "The ticket was matched before it could be cancelled");
export const attributesUnfit = problem(422, "attributes-unfit", "The ticket lacks attributes that its mode requires");
export const partyTooLarge = problem(422, "party-too-large", "The party is too large for the mode");
export const simulationTooLarge = problem(422, "simulation-too-large", "The simulation takes too long");
