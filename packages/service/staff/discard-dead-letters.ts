/** Discards dead letters for staff: they are never retried, and a copy is kept. */
import { changeDeadLetters } from "./redrive-dead-letters.ts";

export const discardDeadLetters = changeDeadLetters("discard", "discardDeadLetters");
