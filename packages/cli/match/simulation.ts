/**
 * A mode played through by a clock that only counts: the rules and the forming of matches are the service's own.
 *
 * As there, whoever joins has matches formed, those who join within a moment together, and what waits is looked at again
 * every second; tickets end when their time is up or their client was not heard of; a user has one open ticket; and those
 * who met lately are kept apart where the rules say so. Nothing is random here: the same tickets, the same outcome.
 */
import { formMatches } from "@todoke/matchmaking/forming";
import { isFifo, type ModeRules, ticketErrors } from "@todoke/matchmaking/rules";
import type { Arrival } from "./arrivals.ts";

type OpenTicket = Parameters<typeof formMatches>[1][number];

/** A ticket that waits, and when it will leave by itself. */
interface Waiting extends OpenTicket {
  readonly cancelsAt: number;
}

export interface MadeMatch {
  readonly region: string | undefined;
  readonly waitsMs: readonly number[];
  /** Between the best and the worst in it; undefined where the mode weighs no skill. */
  readonly skillGap: number | undefined;
  /** Between the strongest and the weakest team, per player. */
  readonly teamGap: number | undefined;
}

export interface Outcome {
  readonly tickets: number;
  readonly matches: readonly MadeMatch[];
  readonly expired: { timeout: number; heartbeat: number };
  readonly cancelled: number;
  /** Lacks what the rules ask for: a join would have been refused. */
  readonly refused: number;
  /** Came while an earlier ticket of the same user waited. */
  readonly alreadyWaiting: number;
  /** How long it all took by the simulated clock. */
  readonly lastedMs: number;
}

export interface SimulationOptions {
  /** Hears how many have come, now and then. */
  readonly onProgress?: (come: number) => void;
}

const lookMs = 1_000;
// As the service: a round weighs so many, and rounds come less often where many wait.
const snapshotMax = 5_000;
const pauseMs = (waiting: number) => Math.max(100, waiting / 10);

export function simulate(
  rules: ModeRules,
  arrivals: readonly Arrival[],
  { onProgress }: SimulationOptions = {},
): Outcome {
  const room = waitingRoom(rules);
  const matches: MadeMatch[] = [];
  let [come, now, lookAt] = [0, 0, Number.POSITIVE_INFINITY];
  while (come < arrivals.length || room.count() > 0) {
    const next = arrivals[come];
    if (next && next.atMs <= lookAt) {
      now = next.atMs;
      room.join(next, now);
      come++;
      const soon = isFifo(rules) ? now : now + pauseMs(room.count());
      lookAt = Math.min(lookAt, soon);
      continue;
    }
    now = lookAt;
    room.sweep(now);
    const tickets = room.snapshot();
    const byId = new Map(tickets.map((ticket) => [ticket.ticketId, ticket]));
    for (const { seats, region } of tickets.length > 1 ? formMatches(rules, tickets, now) : []) {
      const seated = seats.flatMap(({ ticketId, team }) => {
        const ticket = byId.get(ticketId);
        return ticket ? [{ ticket, team }] : [];
      });
      room.matched(
        seated.map(({ ticket }) => ticket),
        now,
      );
      matches.push({ region, ...measured(rules, seated, now) });
    }
    onProgress?.(come);
    lookAt = room.count() > 0 ? now + lookMs : Number.POSITIVE_INFINITY;
  }
  return { ...room.ends, tickets: arrivals.length, matches, lastedMs: now };
}

function waitingRoom(rules: ModeRules) {
  const open = new Map<string, Waiting>(); // by user, in the order of joining
  const met = new Map<string, { readonly users: readonly string[]; readonly until: number }[]>();
  const ends = { expired: { timeout: 0, heartbeat: 0 }, cancelled: 0, refused: 0, alreadyWaiting: 0 };
  let joined = 0;
  return {
    ends,
    count: () => open.size,

    join(arrival: Arrival, now: number): void {
      const { userId } = arrival;
      if (open.has(userId)) ends.alreadyWaiting++;
      else if (ticketErrors(rules, arrival).length > 0) ends.refused++;
      else {
        const lately = (met.get(userId) ?? []).filter(({ until }) => until > now);
        open.set(
          userId,
          ticketOf(arrival, { rules, now, number: ++joined, avoid: lately.flatMap(({ users }) => users) }),
        );
      }
    },

    sweep(now: number): void {
      for (const { userId, cancelsAt, aliveUntil, expiresAt } of open.values()) {
        if (now < Math.min(cancelsAt, aliveUntil)) continue;
        open.delete(userId);
        if (cancelsAt < aliveUntil) ends.cancelled++;
        else ends.expired[aliveUntil < expiresAt ? "heartbeat" : "timeout"]++;
      }
    },

    /** All, or of too many the oldest and the newest. */
    snapshot(): readonly Waiting[] {
      const all = [...open.values()];
      const half = snapshotMax / 2;
      return all.length <= snapshotMax ? all : [...all.slice(0, half), ...all.slice(-half)];
    },

    matched(tickets: readonly Waiting[], now: number): void {
      for (const { userId } of tickets) {
        open.delete(userId);
        if (rules.avoidLastOpponentMs === undefined) continue;
        const users = tickets.flatMap((other) => (other.userId === userId ? [] : [other.userId]));
        const before = (met.get(userId) ?? []).filter(({ until }) => until > now);
        met.set(userId, [...before, { users, until: now + rules.avoidLastOpponentMs }]);
      }
    },
  };
}

interface Joining {
  readonly rules: ModeRules;
  readonly now: number;
  readonly number: number;
  readonly avoid: readonly string[];
}

function ticketOf(arrival: Arrival, { rules, now, number, avoid }: Joining): Waiting {
  const { userId, partySize, attributes, cancelsAfterMs = Number.POSITIVE_INFINITY, silentAfterMs } = arrival;
  const expiresAt = now + rules.ticketMs;
  // Those who stay are heard of in time, again and again: only the last time matters.
  const isLeft = silentAfterMs !== undefined && rules.heartbeatMs !== undefined;
  const aliveUntil = isLeft ? Math.min(expiresAt, now + silentAfterMs + (rules.heartbeatMs ?? 0)) : expiresAt;
  const ids = { ticketId: `${rules.mode}.${number}`, mode: rules.mode, userId };
  return {
    ...ids,
    partySize,
    attributes,
    avoid,
    joinedAt: now,
    expiresAt,
    aliveUntil,
    cancelsAt: now + cancelsAfterMs,
  };
}

function measured(rules: ModeRules, seated: readonly { ticket: Waiting; team: number }[], now: number) {
  const waitsMs = seated.map(({ ticket }) => now - ticket.joinedAt);
  const attribute = rules.skill?.attribute;
  if (attribute === undefined) return { waitsMs, skillGap: undefined, teamGap: undefined };
  const strengths = Array.from({ length: rules.teams }, () => 0);
  const skills = seated.map(({ ticket, team }) => {
    const skill = Number(ticket.attributes[attribute]);
    strengths[team - 1] = (strengths[team - 1] ?? 0) + (skill * ticket.partySize) / rules.teamSize;
    return skill;
  });
  return { waitsMs, skillGap: spanOf(skills), teamGap: spanOf(strengths) };
}

const spanOf = (numbers: readonly number[]): number => Math.max(...numbers) - Math.min(...numbers);
