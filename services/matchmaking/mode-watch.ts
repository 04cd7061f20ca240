/**
 * One mode as a matcher watches it: what is to be asked of the queue now, and when to look again.
 *
 * Somebody who joins has it looked at. What is in use is looked at every second, for windows widen while nobody joins; what
 * is idle, every few seconds. To count and to end what is over is not part of making a match: it is done at most once a
 * second, and at the moment at which the next ticket is over.
 */
import { formMatches } from "./forming/index.ts";
import type { Swept, TicketQueue } from "./queue/index.ts";
import { isInOrder, type ModeRules } from "./rules/types.ts";
import type { MatchTerms } from "./tickets.ts";

/** What a mode that nobody joins waits, or a quarter more, and so what a lost wake-up costs; unless told otherwise. */
export const usualIdleMs = 5_000;
const inUseMs = 1_000;
// Matches of one call: few enough that nobody waits long for the queue, many enough that the call pays.
const matchesMax = 100;
// Calls for one mode before the others have their turn: well below a second on any queue.
const callsMax = 5;
// A round of forming weighs so many tickets.
const ticketsMax = 5_000;
// Rounds of forming take a third of the time at the most; who joins within the shortest pause is formed together.
const formPauseMs = 50;
const formPauseFactor = 2;
// A process that dies while it forms is waited for so long.
const holdMs = 2_000;

const never = Number.POSITIVE_INFINITY;

type MatcherQueue = Pick<TicketQueue, "matchInOrder" | "holdForming" | "snapshot" | "settle" | "sweep">;

/** The mode's rules as they are now. */
interface Current {
  /** None, if the mode has left the rules: nobody is matched there any more, and tickets come to their end. */
  readonly rules: ModeRules | undefined;
  readonly version: string;
}

export interface ModeWatch {
  /** When it is due; this and all times here are readings of performance.now(). */
  readonly lookAt: number;
  /** Somebody has joined, or something else has changed. */
  wake(): void;
  /** Makes the matches that can be made. Rejects with what failed; then it stays as if woken. */
  look(current: Current): Promise<void>;
}

export interface WatchOptions {
  readonly queue: MatcherQueue;
  /** Hears how a mode stands whenever that was looked at. */
  readonly onSwept?: (mode: string, swept: Swept) => void;
  readonly idleMs?: number;
}

export function watchMode(mode: string, { queue, onSwept, idleMs = usualIdleMs }: WatchOptions): ModeWatch {
  let lookAt = 0;
  let sweepAt = 0;
  let formAt = 0;
  let woken = true;
  let waiting = 0;

  async function inOrder(rules: ModeRules, terms: MatchTerms): Promise<number> {
    const round = { ...terms, players: rules.teams * rules.teamSize, matchesMax };
    for (let calls = 0; calls < callsMax; calls++) {
      const { made } = await queue.matchInOrder(mode, round);
      if (made > 0) continue;
      waiting = Math.min(waiting, 1); // Nothing more can be made before somebody joins.
      return never;
    }
    return 0;
  }

  async function form(rules: ModeRules, terms: MatchTerms): Promise<number> {
    const startedAt = performance.now();
    if (!(await queue.holdForming(mode, holdMs))) return startedAt + inUseMs;
    const { tickets, now } = await queue.snapshot(mode, ticketsMax);
    const proposals = tickets.length > 1 ? formMatches(rules, tickets, now) : [];
    if (proposals.length > 0) await queue.settle(mode, proposals, terms);
    waiting = tickets.length - proposals.reduce((sum, { seats }) => sum + seats.length, 0);
    const endedAt = performance.now();
    formAt = endedAt + Math.max(formPauseMs, formPauseFactor * (endedAt - startedAt));
    // Of a queue that is longer than what was weighed, the rest comes next.
    if (tickets.length === ticketsMax && proposals.length > 0) return formAt;
    return waiting > 1 ? endedAt + inUseMs : never;
  }

  /** When to come back for more. */
  async function match({ rules, version }: Current, isWoken: boolean): Promise<number> {
    if (!rules || !(isWoken || waiting > 1)) return never;
    const terms = { rulesVersion: version, session: rules.session };
    if (isInOrder(rules)) return inOrder(rules, terms);
    if (performance.now() >= formAt) return form(rules, terms);
    woken ||= isWoken;
    return formAt;
  }

  async function sweep(): Promise<void> {
    const swept = await queue.sweep(mode);
    waiting = swept.waiting;
    const pauseMs = idleMs * (0.75 + Math.random() / 2); // So that many processes do not come at once.
    sweepAt = performance.now() + Math.min(pauseMs, Math.max(formPauseMs, swept.nextEndMs ?? pauseMs));
    onSwept?.(mode, swept);
  }

  return {
    get lookAt() {
      return lookAt;
    },
    wake() {
      woken = true;
      lookAt = 0;
    },
    async look(current) {
      const isWoken = woken;
      // Whoever joins from now on has it looked at again.
      [woken, lookAt] = [false, never];
      // Who has joined may have less time than all who were there.
      if (isWoken) sweepAt = Math.min(sweepAt, performance.now() + inUseMs);
      try {
        if (sweepAt <= performance.now()) await sweep();
        const againAt = await match(current, isWoken);
        lookAt = Math.min(lookAt, againAt, sweepAt);
      } catch (error) {
        [woken, lookAt] = [woken || isWoken, 0];
        throw error;
      }
    },
  };
}
