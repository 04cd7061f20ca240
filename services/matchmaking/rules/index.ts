/** How matches are made, by mode: read from a file, and taken anew when it changes. */
export { builtInRules, type LiveRules, type LiveRulesOptions, openRules, readRulesFile } from "./live-rules.ts";
export { RulesFaulty, readRules } from "./read-rules.ts";
export { faultsOfPlayer, faultsOfTicket } from "./ticket-faults.ts";
export { isInOrder, type ModeRules, type Rules, type Step } from "./types.ts";
