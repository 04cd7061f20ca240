/** How matches are made in a mode, as read from the rules file; what it leaves open has its default. */

/** Holds from `afterMs` of waiting on, until the next step does. */
export interface Step {
  readonly afterMs: number;
  /** Infinity: anything goes. */
  readonly limit: number;
}

export interface ModeRules {
  readonly mode: string;
  readonly teams: number;
  /** Players of one team. */
  readonly teamSize: number;
  /** Players on one ticket, at the most. */
  readonly partyMax: number;
  readonly ticketMs: number;
  /** How often a client has to be heard of; undefined: it need not. */
  readonly heartbeatMs?: number;
  /** Two meet when they are no further apart than the one who has waited longer accepts by now. */
  readonly skill?: { readonly attribute: string; readonly steps: readonly Step[] };
  /** A match is played in a region that every ticket names. */
  readonly regions?: { readonly attribute: string };
  /** A match is played in a region that nobody is further from than they accept by now, in milliseconds. */
  readonly latency?: { readonly attribute: string; readonly steps: readonly Step[] };
  /** For so long after a match nobody meets those again whom they met in it. */
  readonly avoidLastOpponentMs?: number;
  /** Attributes, and `party_size`, that a player's own join may not set: a back-end joins for the player instead. */
  readonly setByBackend?: readonly string[];
  /** Told to the players of every match, as it is. */
  readonly session: Readonly<Record<string, unknown>>;
}

export interface Rules {
  readonly modes: ReadonlyMap<string, ModeRules>;
  /** Changes with every change of the file. */
  readonly version: string;
}

/** Nothing to weigh: whoever has waited longest plays with who has waited next longest. */
export const isInOrder = ({ partyMax, teamSize, skill, regions, latency, avoidLastOpponentMs }: ModeRules): boolean =>
  partyMax === 1 && teamSize === 1 && !skill && !regions && !latency && avoidLastOpponentMs === undefined;
