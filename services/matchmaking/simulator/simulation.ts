/**
 * Simulates a mode with its own clock. The rules and the matching code are those of the service.
 *
 * As in the service, a join starts a matching pass, joins within a short time share one, and every second there is another
 * pass. Tickets expire by timeout or missing heartbeats. A user has one open ticket. Recent opponents are kept apart if the
 * rules say so. Nothing is random: the same tickets give the same result.
 */
import { formMatches } from "../forming/index.ts";
import { isFifo, type ModeRules, ticketErrors } from "../rules/index.ts";
import type { Arrival } from "./arrivals.ts";

type OpenTicket = Parameters<typeof formMatches>[1][number];

/** A queued ticket, and when it cancels. */
interface QueuedTicket extends OpenTicket {
  readonly cancelsAt: number;
}

export interface MadeMatch {
  readonly region: string | undefined;
  readonly waitsMs: readonly number[];
  /** Between the highest and the lowest skill; undefined if the mode does not use skill. */
  readonly skillGap: number | undefined;
  /** Between the strongest and the weakest team, per player. */
  readonly teamGap: number | undefined;
}

export interface Outcome {
  readonly tickets: number;
  readonly matches: readonly MadeMatch[];
  readonly expired: { timeout: number; heartbeat: number };
  readonly cancelled: number;
  /** Attributes that the rules require are missing: the service would reject the join. */
  readonly refused: number;
  /** Joined while an earlier ticket of the same user was open. */
  readonly alreadyWaiting: number;
  /** In simulated time. */
  readonly durationMs: number;
}

export interface SimulationOptions {
  /** Called with the number of tickets that have arrived. */
  readonly onProgress?: (arrived: number) => void;
}

const passIntervalMs = 1_000;
// As in the service: the size of a pass is limited, and passes are rarer when many tickets wait.
const snapshotMax = 5_000;
const batchDelayMs = (waiting: number) => Math.max(100, waiting / 10);

export function simulate(
  rules: ModeRules,
  arrivals: readonly Arrival[],
  { onProgress }: SimulationOptions = {},
): Outcome {
  const queue = createQueue(rules);
  const matches: MadeMatch[] = [];
  let [arrived, now, nextPassAt] = [0, 0, Number.POSITIVE_INFINITY];
  while (arrived < arrivals.length || queue.count() > 0) {
    const next = arrivals[arrived];
    if (next && next.atMs <= nextPassAt) {
      now = next.atMs;
      queue.join(next, now);
      arrived++;
      const passAt = isFifo(rules) ? now : now + batchDelayMs(queue.count());
      nextPassAt = Math.min(nextPassAt, passAt);
      continue;
    }
    now = nextPassAt;
    queue.sweep(now);
    const tickets = queue.snapshot();
    const byId = new Map(tickets.map((ticket) => [ticket.ticketId, ticket]));
    for (const { seats, region } of tickets.length > 1 ? formMatches(rules, tickets, now) : []) {
      const seated = seats.flatMap(({ ticketId, team }) => {
        const ticket = byId.get(ticketId);
        return ticket ? [{ ticket, team }] : [];
      });
      queue.removeMatched(
        seated.map(({ ticket }) => ticket),
        now,
      );
      matches.push({ region, ...measureMatch(rules, seated, now) });
    }
    onProgress?.(arrived);
    nextPassAt = queue.count() > 0 ? now + passIntervalMs : Number.POSITIVE_INFINITY;
  }
  return { ...queue.counts, tickets: arrivals.length, matches, durationMs: now };
}

function createQueue(rules: ModeRules) {
  const open = new Map<string, QueuedTicket>(); // by user, in join order
  const recentOpponents = new Map<string, { readonly users: readonly string[]; readonly until: number }[]>();
  const counts = { expired: { timeout: 0, heartbeat: 0 }, cancelled: 0, refused: 0, alreadyWaiting: 0 };
  let ticketCount = 0;
  return {
    counts: counts,
    count: () => open.size,

    join(arrival: Arrival, now: number): void {
      const { userId } = arrival;
      if (open.has(userId)) counts.alreadyWaiting++;
      else if (ticketErrors(rules, arrival).length > 0) counts.refused++;
      else {
        const recent = (recentOpponents.get(userId) ?? []).filter(({ until }) => until > now);
        open.set(
          userId,
          createTicket(arrival, { rules, now, number: ++ticketCount, avoid: recent.flatMap(({ users }) => users) }),
        );
      }
    },

    sweep(now: number): void {
      for (const { userId, cancelsAt, aliveUntil, expiresAt } of open.values()) {
        if (now < Math.min(cancelsAt, aliveUntil)) continue;
        open.delete(userId);
        if (cancelsAt < aliveUntil) counts.cancelled++;
        else counts.expired[aliveUntil < expiresAt ? "heartbeat" : "timeout"]++;
      }
    },

    /** All tickets; of too many, the oldest and the newest. */
    snapshot(): readonly QueuedTicket[] {
      const all = [...open.values()];
      const half = snapshotMax / 2;
      return all.length <= snapshotMax ? all : [...all.slice(0, half), ...all.slice(-half)];
    },

    removeMatched(tickets: readonly QueuedTicket[], now: number): void {
      for (const { userId } of tickets) {
        open.delete(userId);
        if (rules.avoidLastOpponentMs === undefined) continue;
        const users = tickets.flatMap((other) => (other.userId === userId ? [] : [other.userId]));
        const before = (recentOpponents.get(userId) ?? []).filter(({ until }) => until > now);
        recentOpponents.set(userId, [...before, { users, until: now + rules.avoidLastOpponentMs }]);
      }
    },
  };
}

interface TicketContext {
  readonly rules: ModeRules;
  readonly now: number;
  readonly number: number;
  readonly avoid: readonly string[];
}

function createTicket(arrival: Arrival, { rules, now, number, avoid }: TicketContext): QueuedTicket {
  const { userId, partySize, attributes, cancelsAfterMs = Number.POSITIVE_INFINITY, silentAfterMs } = arrival;
  const expiresAt = now + rules.ticketMs;
  // Other tickets send heartbeats until they expire.
  const goesSilent = silentAfterMs !== undefined && rules.heartbeatMs !== undefined;
  const aliveUntil = goesSilent ? Math.min(expiresAt, now + silentAfterMs + (rules.heartbeatMs ?? 0)) : expiresAt;
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

function measureMatch(rules: ModeRules, seated: readonly { ticket: QueuedTicket; team: number }[], now: number) {
  const waitsMs = seated.map(({ ticket }) => now - ticket.joinedAt);
  const attribute = rules.skill?.attribute;
  if (attribute === undefined) return { waitsMs, skillGap: undefined, teamGap: undefined };
  const strengths = Array.from({ length: rules.teams }, () => 0);
  const skills = seated.map(({ ticket, team }) => {
    const skill = Number(ticket.attributes[attribute]);
    strengths[team - 1] = (strengths[team - 1] ?? 0) + (skill * ticket.partySize) / rules.teamSize;
    return skill;
  });
  return { waitsMs, skillGap: range(skills), teamGap: range(strengths) };
}

const range = (numbers: readonly number[]): number => Math.max(...numbers) - Math.min(...numbers);
