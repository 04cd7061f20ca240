/** The look-ups of an id in the tables of sessions. Sessions in Redis are not here. */
import { entriesSql, type Lookup } from "@todoke/kernel/why";

const sessionsMax = 10;

const sessionEntries = (from: string) =>
  entriesSql({
    kind: "'session'",
    id: "s.session_id",
    at: "s.created_at",
    state: "case when s.ends_at > now() then 'live' else 'ended' end",
    detail: "s.client || ' session, last used ' || to_char(s.last_seen_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS')",
    links: [["user", "s.user_id"]],
    from,
  });

export const sessionLookups: readonly Lookup[] = [
  { by: "session", shape: "uuid", sql: sessionEntries("sessions s where s.session_id = $1::uuid") },
  {
    by: "user",
    shape: "text",
    sql: sessionEntries(`(select * from sessions where user_id = $1 order by created_at desc limit ${sessionsMax}) s`),
  },
];
