/** The rules of the modes, read from a file. */
export { RulesFaulty, readRules } from "./read-rules.ts";
export { builtInRules, readRulesFile } from "./rules-file.ts";
export { faultsOfTicket, playerErrors } from "./ticket-errors.ts";
export { isInOrder, type ModeRules, type Rules, type Step } from "./types.ts";
