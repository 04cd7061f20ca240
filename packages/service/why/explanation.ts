/** What happened to an id, over all services: the answer to "why?". The console, the API and `todoke why` show the same. */
import type { Blocker, DeadLetterName, Entry, Link } from "@todoke/kernel/why";

/** An entry or a blocker, with the service that knows it. */
export interface TimelineEntry extends Omit<Entry, "blocked_by" | "dead_letter"> {
  readonly service: string;
  readonly blocked_by:
    | (Omit<Blocker, "dead_letter"> & { readonly service: string; readonly dead_letter: Target | null })
    | null;
  readonly dead_letter: Target | null;
}

/** A dead letter that can be redriven or discarded. */
interface Target extends DeadLetterName {
  readonly service: string;
}

/**
 * `dead` needs an operator; `blocked` waits behind something else; `retrying` failed and is retried automatically; `removed` was
 * discarded or deleted; `expired`: only traces are left; `incomplete`: nothing was found, but a service did not answer.
 */
export const outcomes = [
  "done",
  "waiting",
  "retrying",
  "blocked",
  "dead",
  "refused",
  "expired",
  "removed",
  "unknown",
  "incomplete",
] as const;
type WhyOutcome = (typeof outcomes)[number];

export interface Cure {
  readonly text: string;
  /** A command line of `todoke`. */
  readonly command: string | null;
  readonly dead_letter: Target | null;
}

export interface Verdict {
  readonly outcome: WhyOutcome;
  /** One sentence: what happened, or what is in the way. */
  readonly sentence: string;
  readonly cure: Cure | null;
}

/** What one service knew. */
export interface Part {
  readonly service: string;
  /** `absent`: it is not deployed here. */
  readonly status: "ok" | "failed" | "absent";
  readonly reason: string | null;
}

export interface Explanation extends Verdict {
  readonly id: string;
  /** What the id identifies. */
  readonly found: readonly (Link & { readonly service: string })[];
  /** Oldest first; those without a time are last. */
  readonly entries: readonly TimelineEntry[];
  /** True if there are more entries than these. */
  readonly truncated: boolean;
  /** Related ids that were not followed. */
  readonly links: readonly Link[];
  readonly parts: readonly Part[];
}
