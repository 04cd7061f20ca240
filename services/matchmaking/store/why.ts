/** The look-ups of an id in the tables of matchmaking. Tickets that wait in Redis are not here; their ends are. */
import { aggregateAt, entriesSql, type Lookup } from "@todoke/kernel/why";

const ofUserMax = 10;
const playersMax = 100;

const waitingEntries = (from: string) =>
  entriesSql({
    kind: "'ticket'",
    id: "t.ticket_id",
    at: "t.joined_at",
    state: "'QUEUED'",
    detail:
      "t.user_id || ' waits in ' || t.mode || ' until ' || to_char(t.alive_until at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS')",
    links: [["user", "t.user_id"]],
    from,
  });

const endEntries = (from: string) =>
  entriesSql({
    kind: "'ticket'",
    id: "e.ticket_id",
    at: "e.ended_at",
    state: "e.status",
    detail:
      "e.user_id || ' in ' || e.mode || ', waited ' || round(extract(epoch from e.waited)) || ' s' || coalesce(': ' || e.reason, '')",
    links: [
      ["user", "e.user_id"],
      ["match", "e.match_id"],
      ["aggregate", `case e.status when 'EXPIRED' then ${aggregateAt("e.ticket_id", "e.ended_at")} end`],
    ],
    from,
  });

const damagedEntries = entriesSql({
  kind: "'ticket'",
  id: "d.ticket_id",
  at: "d.ended_at",
  state: "'damaged'",
  detail: "'not readable in the queue of ' || d.mode || ': ' || d.why",
  from: "(select * from damaged_tickets where ticket_id = $1 order by mode limit 5) d",
});

const matchEntries = entriesSql({
  kind: "'match'",
  id: "m.match_id",
  at: "m.matched_at",
  state: "'MATCHED'",
  detail: "m.mode || coalesce(' in ' || m.region, '')",
  links: [
    ["match", "m.match_id"],
    ["aggregate", aggregateAt("m.match_id", "m.recorded_at")],
  ],
  from: "matches m where m.match_id = $1::uuid",
});

export const matchmakingLookups: readonly Lookup[] = [
  {
    by: "ticket",
    shape: "text",
    sql: [
      waitingEntries("tickets t where t.ticket_id = $1"),
      endEntries("ticket_ends e where e.ticket_id = $1"),
      damagedEntries,
    ].join("\nunion all\n"),
  },
  {
    by: "match",
    shape: "uuid",
    sql: [
      matchEntries,
      endEntries(`(select * from ticket_ends where match_id = $1::uuid order by user_id limit ${playersMax}) e`),
    ].join("\nunion all\n"),
  },
  {
    by: "user",
    shape: "text",
    sql: [
      waitingEntries(`(select * from tickets where user_id = $1 order by mode limit ${ofUserMax}) t`),
      endEntries(`(select * from ticket_ends where user_id = $1 order by joined_at desc limit ${ofUserMax}) e`),
    ].join("\nunion all\n"),
  },
];
