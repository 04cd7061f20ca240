/**
 * Checks invariants M1 to M8 of matchmaking: responses to players, the record in PostgreSQL and notifications must agree.
 * Violations are sentences; an empty list means that all invariants hold.
 */
import type { Db } from "@todoke/kernel/db";
import type { Status, TicketResponse } from "./player-load.ts";

export interface End {
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

export interface MatchmakingRecord {
  readonly ends: readonly End[];
  readonly matches: readonly { readonly match_id: string; readonly mode: string }[];
  readonly made: readonly (MatchEvent & { readonly event_id: string })[];
  readonly expired: readonly { readonly event_id: string; readonly ticket_id: string; readonly user_id: string }[];
  /** "event user", one for each notification. */
  readonly notified: readonly string[];
}

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8 as ${column}`;

export async function readRecord(db: Db): Promise<MatchmakingRecord> {
  const rows = async (sql: string) => (await db.query(sql)).rows;
  const events = await rows(`select event_id, event_type, payload from matchmaking.outbox_events`);
  const eventsOfType = (type: string) =>
    events.filter((row) => row.event_type === type).map(({ event_id, payload }) => ({ ...payload, event_id }));
  return {
    ends: await rows(
      `select ticket_id, user_id, mode, status, reason, match_id, team, ${ms("joined_at")}, ${ms("expires_at")}, ${ms("ended_at")}
         from matchmaking.ticket_ends`,
    ),
    matches: await rows(`select match_id, mode from matchmaking.matches`),
    made: eventsOfType("MatchMade"),
    expired: eventsOfType("TicketExpired"),
    notified: (await rows(`select event_id || ' ' || user_id as event_and_user from notification.notifications`)).map(
      (row) => row.event_and_user,
    ),
  };
}

/** Event and user of every notification that must exist. */
const dueNotifications = ({ made, expired }: MatchmakingRecord): string[] => [
  ...made.flatMap(({ event_id, players }) => players.map(({ user_id }) => `${event_id} ${user_id}`)),
  ...expired.map(({ event_id, user_id }) => `${event_id} ${user_id}`),
];

/** Whether every due notification exists. */
export async function isAllNotified(db: Db): Promise<boolean> {
  const record = await readRecord(db);
  const notified = new Set(record.notified);
  const { rowCount } = await db.query(`select from matchmaking.outbox_events where status <> 'PUBLISHED'`);
  return rowCount === 0 && dueNotifications(record).every((each) => notified.has(each));
}

export interface PlayHistory {
  readonly responses: readonly TicketResponse[];
  readonly record: MatchmakingRecord;
  /** Tickets in the queue at the end. */
  readonly waiting: readonly { readonly ticketId: string; readonly user: string }[];
  /** Redis lost data: tickets may be lost, and an ended one may be queued again. */
  readonly redisLostData: boolean;
}

export function findViolations(played: PlayHistory): readonly string[] {
  return [
    ...ticketViolations(played),
    ...matchViolations(played),
    ...responseViolations(played),
    ...countViolations(played),
    ...(played.redisLostData ? [] : orderViolations(played)),
    ...notificationViolations(played),
  ];
}

const duplicates = (all: readonly string[]): string[] =>
  [...Map.groupBy(all, (each) => each)].filter(([, same]) => same.length > 1).map(([each]) => each);

/** M1. */
function ticketViolations({ record, waiting, responses }: PlayHistory): string[] {
  const modeOf = (ticketId: string) => ticketId.split(".")[0];
  return [
    ...duplicates(record.ends.map((end) => end.ticket_id)).map((id) => `M1: ${id} ended twice`),
    ...duplicates(record.made.flatMap(({ players }) => players.map((player) => player.ticket_id))).map(
      (id) => `M1: ${id} is in two MatchMade events`,
    ),
    ...duplicates(waiting.map(({ ticketId, user }) => `${user} in ${modeOf(ticketId)}`)).map(
      (user) => `M1: ${user} is queued twice`,
    ),
    ...concurrentTickets(responses, record).map((each) => `M1: ${each}`),
  ];
}

/** A ticket is queued from its first QUEUED response until its last one, or until its end. */
function concurrentTickets(responses: readonly TicketResponse[], { ends }: MatchmakingRecord): string[] {
  const endedAt = new Map(ends.map((end) => [end.ticket_id, end.ended_at]));
  const seen = responses.filter(({ by, status }) => (by === "get" || by === "heartbeat") && status === "QUEUED");
  const spans = [...Map.groupBy(seen, ({ ticketId }) => ticketId)].map(([ticketId, its]) => ({
    ticketId,
    user: its[0]?.user,
    from: Math.min(...its.map(({ receivedAt }) => receivedAt)),
    // A ticket that Redis has matched is reported as queued until the match is recorded.
    to: Math.min(Math.max(...its.map(({ sentAt }) => sentAt)), endedAt.get(ticketId) ?? Number.POSITIVE_INFINITY),
  }));
  const isAtOnce = (one: (typeof spans)[number]) => (other: (typeof spans)[number]) =>
    one.ticketId < other.ticketId && one.from < other.to && other.from < one.to;
  return [...Map.groupBy(spans, ({ user }) => user)].flatMap(([user, its]) =>
    its.flatMap((one) =>
      its.filter(isAtOnce(one)).map((other) => `${user} was queued with ${one.ticketId} and ${other.ticketId} at once`),
    ),
  );
}

/** M2, M4, M7: a match is recorded with one event, has two players of its mode, and none of them had expired. */
function matchViolations({ record: { ends, matches, made } }: PlayHistory): string[] {
  const endsByMatch = Map.groupBy(
    ends.filter((end) => end.match_id !== null),
    (end) => end.match_id,
  );
  const events = Map.groupBy(made, (event) => event.match_id);
  const known = new Set(matches.map((match) => match.match_id));
  return [
    ...matches.flatMap(({ match_id, mode }) => {
      const its = endsByMatch.get(match_id) ?? [];
      const [event, ...more] = events.get(match_id) ?? [];
      const violations: string[] = [];
      if (new Set(its.map((end) => end.user_id)).size !== 2 || its.length !== 2)
        violations.push(`M2: match ${match_id} is of ${its.map((end) => end.user_id)}`);
      if (its.some((end) => end.mode !== mode)) violations.push(`M2: match ${match_id} mixes modes`);
      if (new Set(its.map((end) => end.team)).size !== its.length)
        violations.push(`M2: match ${match_id} has one team`);
      if (!event || more.length > 0) violations.push(`M4: match ${match_id} has ${event ? 1 + more.length : 0} events`);
      const eventTickets = event?.players.map((player) => player.ticket_id).sort();
      if (event && String(eventTickets) !== String(its.map((end) => end.ticket_id).sort()))
        violations.push(`M4: match ${match_id} has an event with other tickets`);
      return violations;
    }),
    ...[...events.keys()]
      .filter((id) => !known.has(id))
      .map((id) => `M4: match ${id} has an event and is not recorded`),
    ...ends
      .filter((end) => end.status === "MATCHED" && end.ended_at > end.expires_at)
      .map((end) => `M7: ${end.ticket_id} was matched after it expired`),
  ];
}

/** M3: the recorded end is the one in every response, and later responses do not contradict it. */
function responseViolations({ responses, record }: PlayHistory): string[] {
  const ends = new Map(record.ends.map((end) => [end.ticket_id, end]));
  const users = Map.groupBy(record.ends, (end) => end.match_id);
  const contradicted = responses
    .filter(({ status }) => status !== "QUEUED")
    .flatMap((each) => {
      const end = ends.get(each.ticketId);
      const peers = (users.get(each.matchId ?? "") ?? []).map((one) => one.user_id).filter((one) => one !== each.user);
      if (end?.status !== each.status || (each.reason !== undefined && end.reason !== each.reason))
        return [`M3: ${each.ticketId} was reported as ${formatStatus(each)} and is ${end?.status ?? "not recorded"}`];
      if (each.matchId !== undefined && each.matchId !== end?.match_id)
        return [`M3: ${each.ticketId} was reported in ${each.matchId} and is in ${end?.match_id}`];
      if (each.peers && String(each.peers) !== String(peers))
        return [`M3: ${each.ticketId} was reported with ${each.peers} and is with ${peers}`];
      return [];
    });
  const backwards = [...Map.groupBy(responses, ({ ticketId }) => ticketId)].flatMap(([ticketId, its]) => {
    const over = Math.min(...its.filter(({ status }) => status !== "QUEUED").map(({ receivedAt }) => receivedAt));
    // A repeated join returns its first response.
    return its.some(({ by, status, sentAt }) => by !== "join" && status === "QUEUED" && sentAt > over)
      ? [`M3: ${ticketId} was reported as ended and later as queued`]
      : [];
  });
  return [...new Set([...contradicted, ...backwards])];
}

const formatStatus = ({ status, reason }: TicketResponse) => (reason === undefined ? status : `${status} (${reason})`);

/** M5, M6: every issued ticket is queued or has ended; one is lost only if Redis lost data. */
function countViolations({ responses, record, waiting, redisLostData }: PlayHistory): string[] {
  const issued = new Set(responses.map(({ ticketId }) => ticketId));
  const existing = new Set([...record.ends.map((end) => end.ticket_id), ...waiting.map(({ ticketId }) => ticketId)]);
  const [missing, extra] = [issued.difference(existing), existing.difference(issued)];
  const lost = record.ends.filter((end) => end.reason === "lost");
  return [
    ...[...missing].map((id) => `M5: ${id} is neither queued nor ended`),
    ...(redisLostData ? [] : lost.map((end) => `M6: ${end.ticket_id} was lost although Redis lost no data`)),
    // A ticket that Redis lost at once has no response.
    ...(redisLostData ? [] : [...extra].map((id) => `M5: no player was given ${id}`)),
  ];
}

/**
 * M8: in a first-come-first-served mode, no queued ticket is passed over by two later ones. A ticket counts as queued from
 * its join response, because its commit may be later than its join time.
 */
function orderViolations({ responses, record }: PlayHistory): string[] {
  const joinedResponseAt = new Map<string, number>();
  for (const { by, ticketId, receivedAt } of responses)
    if (by === "join")
      joinedResponseAt.set(ticketId, Math.min(receivedAt, joinedResponseAt.get(ticketId) ?? receivedAt));
  const duels = record.ends.filter((end) => end.mode === "duel" && end.status === "MATCHED");
  const byJoin = duels.toSorted((a, b) => a.joined_at - b.joined_at);
  return byJoin.flatMap((first, index) => {
    const passing = byJoin
      .slice(index + 1)
      .find((later) => later.joined_at > first.joined_at && later.ended_at < first.ended_at && hadJoined(first, later));
    return passing ? [`M8: ${first.ticket_id} was passed over by ${passing.ticket_id}`] : [];
  });

  function hadJoined(first: End, later: End): boolean {
    return (joinedResponseAt.get(first.ticket_id) ?? Number.POSITIVE_INFINITY) < later.ended_at;
  }
}

/** Each player is notified of each end once, and of nothing else. */
function notificationViolations({ record }: PlayHistory): string[] {
  const due = dueNotifications(record);
  const expired = new Set(record.expired.map((event) => event.ticket_id));
  return [
    ...duplicates(record.notified).map((each) => `${each} was notified twice`),
    ...[...new Set(due).symmetricDifference(new Set(record.notified))].map(
      (each) => `${each} is due without a notification, or notified without being due`,
    ),
    ...record.ends
      .filter((end) => end.status === "EXPIRED" && end.reason !== "lost" && !expired.has(end.ticket_id))
      .map((end) => `${end.ticket_id} expired without an event`),
  ];
}
