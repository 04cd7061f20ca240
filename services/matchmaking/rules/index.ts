/** The rules of the modes, read from a file. */
export { RulesError, readRules } from "./read-rules.ts";
export { builtInRules, readRulesFile } from "./rules-file.ts";
export { playerErrors, ticketErrors } from "./ticket-errors.ts";
export { isFifo, type ModeRules, type Rules, type Step } from "./types.ts";
