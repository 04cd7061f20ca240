/** The rules of the modes, with defaults filled in. */

/** Applies from `afterMs` of waiting until the next step. */
export interface Step {
  readonly afterMs: number;
  /** Infinity: no limit. */
  readonly limit: number;
}

export interface ModeRules {
  readonly mode: string;
  readonly teams: number;
  /** Players per team. */
  readonly teamSize: number;
  /** The most players on one ticket. */
  readonly partyMax: number;
  readonly ticketMs: number;
  /** The longest time between two heartbeats; undefined if none are required. */
  readonly heartbeatMs?: number;
  /** Two tickets match if their difference in skill is within what the older one accepts by now. */
  readonly skill?: { readonly attribute: string; readonly steps: readonly Step[] };
  /** A match needs a region that every ticket names. */
  readonly regions?: { readonly attribute: string };
  /** A match needs a region whose latency is within what each ticket accepts by now, in milliseconds. */
  readonly latency?: { readonly attribute: string; readonly steps: readonly Step[] };
  /** For this long after a match, its players are not matched with each other again. */
  readonly avoidLastOpponentMs?: number;
  /** Attributes, and `party_size`, that only a back-end may set, by joining for the player. */
  readonly setByBackend?: readonly string[];
  /** Returned to the players of every match as it is. */
  readonly session: Readonly<Record<string, unknown>>;
}

export interface Rules {
  readonly modes: ReadonlyMap<string, ModeRules>;
  /** Changes with every change of the file. */
  readonly version: string;
}

/** True if the mode has no conditions: tickets are matched in join order. */
export const isInOrder = ({ partyMax, teamSize, skill, regions, latency, avoidLastOpponentMs }: ModeRules): boolean =>
  partyMax === 1 && teamSize === 1 && !skill && !regions && !latency && avoidLastOpponentMs === undefined;
