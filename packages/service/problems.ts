/** The problems of the routes that every service has. docs/errors.md lists them (a test compares). */
import { problem } from "@todoke/kernel/problem";

export const failedEventNotFound = problem(404, "failed-event-not-found", "No FAILED event has this id");
export const deadLetterNotFound = problem(404, "dead-letter-not-found", "There is no such dead letter");
export const batchNotFound = problem(404, "batch-not-found", "There is no such batch");
export const debugClosed = problem(403, "debug-closed", "The debug routes are closed here");
