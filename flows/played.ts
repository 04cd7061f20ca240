/**
 * Whether what players were told, what is on record and what was notified fit together: invariants M1 to M8 of matchmaking.
 *
 * The record is PostgreSQL's. Faults are told as sentences; none means that all of them hold.
 */
import type { Db } from "@todoke/kernel/db";
import type { Status, Told } from "./playing.ts";

interface End {
  readonly ticket_id: string;
  readonly user_id: string;
  readonly mode: string;
  readonly status: Exclude<Status, "QUEUED">;
  readonly reason: string | null;
  readonly match_id: string | null;
  readonly team: number | null;
  /** These three are milliseconds since 1970. */
  readonly joined_at: number;
  readonly expires_at: number;
  readonly ended_at: number;
}

interface MatchEvent {
  readonly match_id: string;
  readonly mode: string;
  readonly players: readonly { readonly user_id: string; readonly ticket_id: string }[];
}

export interface OnRecord {
  readonly ends: readonly End[];
  readonly matches: readonly { readonly match_id: string; readonly mode: string }[];
  readonly made: readonly (MatchEvent & { readonly event_id: string })[];
  readonly expired: readonly { readonly event_id: string; readonly ticket_id: string; readonly user_id: string }[];
  /** "event user", one for each notification. */
  readonly notified: readonly string[];
}

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8 as ${column}`;

export async function readRecord(db: Db): Promise<OnRecord> {
  const rows = async (text: string) => (await db.query(text)).rows;
  const events = await rows(`select event_id, event_type, payload from matchmaking.outbox_events`);
  const of = (type: string) =>
    events.filter((row) => row.event_type === type).map(({ event_id, payload }) => ({ ...payload, event_id }));
  return {
    ends: await rows(
      `select ticket_id, user_id, mode, status, reason, match_id, team, ${ms("joined_at")}, ${ms("expires_at")}, ${ms("ended_at")}
         from matchmaking.ticket_ends`,
    ),
    matches: await rows(`select match_id, mode from matchmaking.matches`),
    made: of("MatchMade"),
    expired: of("TicketExpired"),
    notified: (await rows(`select event_id || ' ' || user_id as told from notification.notifications`)).map(
      (row) => row.told,
    ),
  };
}

/** What each notification must be of. */
const owed = ({ made, expired }: OnRecord): string[] => [
  ...made.flatMap(({ event_id, players }) => players.map(({ user_id }) => `${event_id} ${user_id}`)),
  ...expired.map(({ event_id, user_id }) => `${event_id} ${user_id}`),
];

/** Whether everybody has been told of what is on record. */
export async function isAllTold(db: Db): Promise<boolean> {
  const record = await readRecord(db);
  const told = new Set(record.notified);
  const { rowCount } = await db.query(`select from matchmaking.outbox_events where status <> 'PUBLISHED'`);
  return rowCount === 0 && owed(record).every((each) => told.has(each));
}

export interface Played {
  readonly told: readonly Told[];
  readonly record: OnRecord;
  /** What waits at the end, by the queue itself. */
  readonly waiting: readonly { readonly ticketId: string; readonly user: string }[];
  /** Whether Redis has lost or taken back anything: then tickets may be lost, and an old one wait again. */
  readonly mayForget: boolean;
}

export function faultsOf(played: Played): readonly string[] {
  return [
    ...faultsOfTickets(played),
    ...faultsOfMatches(played),
    ...faultsOfAnswers(played),
    ...faultsOfCounts(played),
    ...(played.mayForget ? [] : faultsOfOrder(played)),
    ...faultsOfNotifications(played),
  ];
}

const twice = (all: readonly string[]): string[] =>
  [...Map.groupBy(all, (each) => each)].filter(([, same]) => same.length > 1).map(([each]) => each);

/** M1. */
function faultsOfTickets({ record, waiting, told }: Played): string[] {
  const modeOf = (ticketId: string) => ticketId.split(".")[0];
  return [
    ...twice(record.ends.map((end) => end.ticket_id)).map((id) => `M1: ${id} has ended twice`),
    ...twice(record.made.flatMap(({ players }) => players.map((player) => player.ticket_id))).map(
      (id) => `M1: ${id} is in two matches that were told`,
    ),
    ...twice(waiting.map(({ ticketId, user }) => `${user} in ${modeOf(ticketId)}`)).map(
      (user) => `M1: ${user} waits twice`,
    ),
    ...faultsOfOneAtATime(told, record).map((each) => `M1: ${each}`),
  ];
}

/** Whoever is seen to wait with a ticket waits with it from then until it is seen for the last time, or until it ends. */
function faultsOfOneAtATime(told: readonly Told[], { ends }: OnRecord): string[] {
  const endedAt = new Map(ends.map((end) => [end.ticket_id, end.ended_at]));
  const seen = told.filter(({ by, status }) => (by === "look" || by === "beat") && status === "QUEUED");
  const spans = [...Map.groupBy(seen, ({ ticketId }) => ticketId)].map(([ticketId, its]) => ({
    ticketId,
    user: its[0]?.user,
    from: Math.min(...its.map(({ answeredAt }) => answeredAt)),
    // A ticket that Redis has matched is told as waiting until that is on record.
    to: Math.min(Math.max(...its.map(({ askedAt }) => askedAt)), endedAt.get(ticketId) ?? Number.POSITIVE_INFINITY),
  }));
  const isAtOnce = (one: (typeof spans)[number]) => (other: (typeof spans)[number]) =>
    one.ticketId < other.ticketId && one.from < other.to && other.from < one.to;
  return [...Map.groupBy(spans, ({ user }) => user)].flatMap(([user, its]) =>
    its.flatMap((one) =>
      its.filter(isAtOnce(one)).map((other) => `${user} waited with ${one.ticketId} and ${other.ticketId} at once`),
    ),
  );
}

/** M2, M4, M7: a match is whole, on record and told once, of different players of its mode, none of whose time was up. */
function faultsOfMatches({ record: { ends, matches, made } }: Played): string[] {
  const seats = Map.groupBy(
    ends.filter((end) => end.match_id !== null),
    (end) => end.match_id,
  );
  const events = Map.groupBy(made, (event) => event.match_id);
  const known = new Set(matches.map((match) => match.match_id));
  return [
    ...matches.flatMap(({ match_id, mode }) => {
      const its = seats.get(match_id) ?? [];
      const [event, ...more] = events.get(match_id) ?? [];
      const faults: string[] = [];
      if (new Set(its.map((end) => end.user_id)).size !== 2 || its.length !== 2)
        faults.push(`M2: match ${match_id} is of ${its.map((end) => end.user_id)}`);
      if (its.some((end) => end.mode !== mode)) faults.push(`M2: match ${match_id} mixes modes`);
      if (new Set(its.map((end) => end.team)).size !== its.length) faults.push(`M2: match ${match_id} has one team`);
      if (!event || more.length > 0) faults.push(`M4: match ${match_id} has ${event ? 1 + more.length : 0} events`);
      const told = event?.players.map((player) => player.ticket_id).sort();
      if (event && String(told) !== String(its.map((end) => end.ticket_id).sort()))
        faults.push(`M4: match ${match_id} was told of other tickets than it has`);
      return faults;
    }),
    ...[...events.keys()].filter((id) => !known.has(id)).map((id) => `M4: match ${id} was told and is not on record`),
    ...ends
      .filter((end) => end.status === "MATCHED" && end.ended_at > end.expires_at)
      .map((end) => `M7: ${end.ticket_id} was matched when its time was up`),
  ];
}

/** M3: what was told of a ticket's end is on record as it was told, and whoever asked later heard the same. */
function faultsOfAnswers({ told, record }: Played): string[] {
  const ends = new Map(record.ends.map((end) => [end.ticket_id, end]));
  const users = Map.groupBy(record.ends, (end) => end.match_id);
  const contradicted = told
    .filter(({ status }) => status !== "QUEUED")
    .flatMap((each) => {
      const end = ends.get(each.ticketId);
      const peers = (users.get(each.matchId ?? "") ?? []).map((one) => one.user_id).filter((one) => one !== each.user);
      if (end?.status !== each.status || (each.reason !== undefined && end.reason !== each.reason))
        return [`M3: ${each.ticketId} was told as ${said(each)}, and is ${end?.status ?? "not on record"}`];
      if (each.matchId !== undefined && each.matchId !== end?.match_id)
        return [`M3: ${each.ticketId} was told to be in ${each.matchId}, and is in ${end?.match_id}`];
      if (each.peers && String(each.peers) !== String(peers))
        return [`M3: ${each.ticketId} was told to play with ${each.peers}, and plays with ${peers}`];
      return [];
    });
  const backwards = [...Map.groupBy(told, ({ ticketId }) => ticketId)].flatMap(([ticketId, its]) => {
    const over = Math.min(...its.filter(({ status }) => status !== "QUEUED").map(({ answeredAt }) => answeredAt));
    // A join that is sent again is answered as it was the first time.
    return its.some(({ by, status, askedAt }) => by !== "join" && status === "QUEUED" && askedAt > over)
      ? [`M3: ${ticketId} was told as over, and later as waiting`]
      : [];
  });
  return [...new Set([...contradicted, ...backwards])];
}

const said = ({ status, reason }: Told) => (reason === undefined ? status : `${status} (${reason})`);

/** M5, M6: every ticket that was given out waits or has ended; only what Redis has forgotten may be lost, and is told so. */
function faultsOfCounts({ told, record, waiting, mayForget }: Played): string[] {
  const given = new Set(told.map(({ ticketId }) => ticketId));
  const there = new Set([...record.ends.map((end) => end.ticket_id), ...waiting.map(({ ticketId }) => ticketId)]);
  const [missing, extra] = [given.difference(there), there.difference(given)];
  const lost = record.ends.filter((end) => end.reason === "lost");
  return [
    ...[...missing].map((id) => `M5: ${id} is nowhere`),
    ...(mayForget ? [] : lost.map((end) => `M6: ${end.ticket_id} was lost, and Redis has forgotten nothing`)),
    // Nobody was answered about a ticket that Redis forgot at once.
    ...(mayForget ? [] : [...extra].map((id) => `M5: nobody was given ${id}`)),
  ];
}

/**
 * M8: in a mode in the order of waiting, nobody who waited was passed over by two who came later. Whoever was told that the
 * ticket waits before the match was made did wait; in between its commit may have come later than its time says.
 */
function faultsOfOrder({ told, record }: Played): string[] {
  const heardAt = new Map<string, number>();
  for (const { by, ticketId, answeredAt } of told)
    if (by === "join") heardAt.set(ticketId, Math.min(answeredAt, heardAt.get(ticketId) ?? answeredAt));
  const duels = record.ends.filter((end) => end.mode === "duel" && end.status === "MATCHED");
  const byJoin = duels.toSorted((a, b) => a.joined_at - b.joined_at);
  return byJoin.flatMap((first, place) => {
    const passing = byJoin
      .slice(place + 1)
      .find((later) => later.joined_at > first.joined_at && later.ended_at < first.ended_at && wasHeard(first, later));
    return passing ? [`M8: ${first.ticket_id} was passed over by ${passing.ticket_id}`] : [];
  });

  function wasHeard(first: End, later: End): boolean {
    return (heardAt.get(first.ticket_id) ?? Number.POSITIVE_INFINITY) < later.ended_at;
  }
}

/** Each player is told of each end once, and of nothing else. */
function faultsOfNotifications({ record }: Played): string[] {
  const due = owed(record);
  const expired = new Set(record.expired.map((event) => event.ticket_id));
  return [
    ...twice(record.notified).map((each) => `${each} was notified twice`),
    ...[...new Set(due).symmetricDifference(new Set(record.notified))].map(
      (each) => `${each} is due or notified alone`,
    ),
    ...record.ends
      .filter((end) => end.status === "EXPIRED" && end.reason !== "lost" && !expired.has(end.ticket_id))
      .map((end) => `${end.ticket_id} ended in silence`),
  ];
}
