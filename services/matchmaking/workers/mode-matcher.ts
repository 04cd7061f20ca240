/**
 * The matcher of one mode: what to ask of the queue now, and when to run again.
 *
 * A join makes the mode due. A mode with waiting tickets runs every second, because skill windows widen without a join; an
 * idle one runs every few seconds. Counting and expiring tickets is not needed for a match, so a sweep runs at most once a
 * second, and when the next ticket expires.
 */
import { formMatches } from "../forming/index.ts";
import type { SweepResult, TicketQueue } from "../queue/index.ts";
import type { MatchTerms } from "../queue/ticket.ts";
import { isFifo, type ModeRules } from "../rules/types.ts";

/** The pause of an idle mode, plus or minus a quarter. This is what a lost wake-up costs. */
export const defaultIdleMs = 5_000;
const activeMs = 1_000;
// Matches per call: few enough to block the queue for a short time only, many enough to be worth the call.
const matchesMax = 100;
// Calls for one mode before the other modes get their turn; well below a second on any queue.
const callsMax = 5;
const formTicketsMax = 5_000;
// Forming takes at most a third of the time. Tickets that join during the shortest pause are formed together.
const formPauseMs = 50;
const formPauseFactor = 2;
// How long other processes wait after a process crashed while it formed matches.
const formingLeaseMs = 2_000;

const never = Number.POSITIVE_INFINITY;

type MatcherQueue = Pick<TicketQueue, "matchFifo" | "acquireFormingLease" | "snapshot" | "commitProposals" | "sweep">;

interface CurrentRules {
  /** Undefined if the mode has left the rules: its tickets are no longer matched and expire. */
  readonly rules: ModeRules | undefined;
  readonly version: string;
}

export interface ModeMatcher {
  /** By performance.now(), like all times here. */
  readonly dueAt: number;
  /** Makes the mode due, after a join or another change. */
  wake(): void;
  /** Makes the matches that are possible. If it rejects, the mode stays due. */
  runOnce(current: CurrentRules): Promise<void>;
}

export interface ModeMatcherOptions {
  readonly queue: MatcherQueue;
  readonly onSwept?: (mode: string, swept: SweepResult) => void;
  readonly idleMs?: number;
}

export function createModeMatcher(mode: string, options: ModeMatcherOptions): ModeMatcher {
  const { queue, onSwept, idleMs = defaultIdleMs } = options;
  let dueAt = 0;
  let sweepAt = 0;
  let formAt = 0;
  let woken = true;
  let waiting = 0;

  async function matchFifo(rules: ModeRules, terms: MatchTerms): Promise<number> {
    const round = { ...terms, players: rules.teams * rules.teamSize, matchesMax };
    for (let calls = 0; calls < callsMax; calls++) {
      const { made } = await queue.matchFifo(mode, round);
      if (made > 0) continue;
      waiting = Math.min(waiting, 1); // No further match is possible before a join.
      return never;
    }
    return 0;
  }

  async function form(rules: ModeRules, terms: MatchTerms): Promise<number> {
    const startedAt = performance.now();
    if (!(await queue.acquireFormingLease(mode, formingLeaseMs))) return startedAt + activeMs;
    const { tickets, now } = await queue.snapshot(mode, formTicketsMax);
    const proposals = tickets.length > 1 ? formMatches(rules, tickets, now) : [];
    if (proposals.length > 0) await queue.commitProposals(mode, proposals, terms);
    waiting = tickets.length - proposals.reduce((sum, { seats }) => sum + seats.length, 0);
    const endedAt = performance.now();
    formAt = endedAt + Math.max(formPauseMs, formPauseFactor * (endedAt - startedAt));
    // The queue may be longer than the snapshot: continue with the rest.
    if (tickets.length === formTicketsMax && proposals.length > 0) return formAt;
    return waiting > 1 ? endedAt + activeMs : never;
  }

  /** Returns when to run again. */
  async function match({ rules, version }: CurrentRules, wasWoken: boolean): Promise<number> {
    if (!rules || !(wasWoken || waiting > 1)) return never;
    const terms = { rulesVersion: version, session: rules.session };
    if (isFifo(rules)) return matchFifo(rules, terms);
    if (performance.now() >= formAt) return form(rules, terms);
    woken ||= wasWoken;
    return formAt;
  }

  async function sweep(): Promise<void> {
    const swept = await queue.sweep(mode);
    waiting = swept.waiting;
    const pauseMs = idleMs * (0.75 + Math.random() / 2); // Jitter, so that processes do not sweep at the same time.
    sweepAt = performance.now() + Math.min(pauseMs, Math.max(formPauseMs, swept.nextEndMs ?? pauseMs));
    onSwept?.(mode, swept);
  }

  return {
    get dueAt() {
      return dueAt;
    },
    wake() {
      woken = true;
      dueAt = 0;
    },
    async runOnce(current) {
      const wasWoken = woken;
      // Reset first: a join during this run makes the mode due again.
      [woken, dueAt] = [false, never];
      // The new ticket may expire before all others.
      if (wasWoken) sweepAt = Math.min(sweepAt, performance.now() + activeMs);
      try {
        if (sweepAt <= performance.now()) await sweep();
        const againAt = await match(current, wasWoken);
        dueAt = Math.min(dueAt, againAt, sweepAt);
      } catch (error) {
        [woken, dueAt] = [woken || wasWoken, 0];
        throw error;
      }
    },
  };
}
