/** The look-ups of an id in the tables of users. */
import { aggregateAt, entriesSql, type Lookup } from "@todoke/kernel/why";

const usersMax = 5;
const changesMax = 10;

/** The users, and their latest changes. `from` has them as `u`. */
const userEntries = (from: string) =>
  [
    entriesSql({
      kind: "'user'",
      id: "u.user_id",
      at: "u.created_at",
      state: "case when u.status = 'SUSPENDED' and u.suspended_until <= now() then 'ACTIVE' else u.status end",
      detail: "concat_ws(', ', u.display_name, u.email, 'suspended: ' || u.suspended_reason)",
      links: [["user", "u.user_id"]],
      from,
    }),
    entriesSql({
      kind: "'commit'",
      id: "a.user_id || '@' || a.version",
      at: "a.created_at",
      state: "a.action",
      process: "a.actor",
      detail: "concat_ws(': ', 'version ' || a.version || ' of the user', a.reason)",
      links: [
        ["user", "a.user_id"],
        ["aggregate", aggregateAt("a.user_id", "a.created_at")],
      ],
      from: `(select u.user_id from ${from}) u
        cross join lateral (
          select * from audit_logs l where l.user_id = u.user_id order by l.audit_id desc limit ${changesMax}) a`,
    }),
  ].join("\nunion all\n");

export const userLookups: readonly Lookup[] = [
  { by: "user", shape: "text", sql: userEntries("users u where u.user_id = $1") },
  {
    by: "email",
    shape: "email",
    sql: userEntries(`(select * from users where lower(email) = lower($1) order by user_id limit ${usersMax}) u`),
  },
];
