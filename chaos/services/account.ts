/** The account service in a run. The gateway calls it: its players and its admin are those of gateway-bff. */
import { checkPublished } from "../checks/outbox.ts";
import type { Evidence, Row } from "../evidence.ts";
import { type Violation, violation } from "../invariants.ts";
import { outboxTable } from "../watch.ts";
import type { ServiceUnderTest } from "./index.ts";
import { adminName, verifyingKeys } from "./players.ts";

export const account: ServiceUnderTest = {
  name: "account",
  copies: 2,
  load: () => import("@todoke/account"),
  env: ({ issuer }) => ({
    ACCOUNT_PORT: "0",
    ACCOUNT_BATCH_MAX: String(outboxTable.batchMax),
    ACCOUNT_ADMINS: `${issuer} ${adminName}`,
    TODOKE_TOKEN_KEYS: verifyingKeys,
  }),
  commits: ["insert user", "commit"],
  publishes: true,
  consumes: false,
  isCalled: true,
  failpoints: ["relay.", "statement.", "transaction.", "stop."],
  lock: `select from account.users limit 3 for update skip locked`,
  tables: [outboxTable],
  unfinished: `select count(*)::int as unfinished from account.outbox_events where status <> 'PUBLISHED'`,
  evidence: {
    users: `select u.user_id, u.status, u.version::int, i.subject,
                   (select count(*) from account.outbox_events e
                     where e.aggregate_key = u.user_id and e.event_type = 'AccountCreated')::int as created_events
              from account.users u left join account.identities i using (user_id)`,
    events: `select event_id::text, event_type, aggregate_key as aggregate, version::int, status, position::int,
                    attempt_count, last_error
               from account.outbox_events order by position`,
  },
  check: (evidence) => [...checkUsers(evidence), ...checkPublished(evidence, rows(evidence, "events"))],
};

const rows = ({ tables }: Evidence, name: string): readonly Row[] => tables[`account/${name}`] ?? [];

/** A user has one identity and one event of its creation. Two users of one identity would leave one of them without it. */
function checkUsers(evidence: Evidence): Violation[] {
  return rows(evidence, "users").flatMap(({ user_id, subject, created_events }) => [
    ...(subject === null ? [violation("one-user-per-identity", `user ${user_id} has no identity`)] : []),
    ...(created_events === 1
      ? []
      : [violation("event-per-change", `user ${user_id} has ${created_events} events of its creation`)]),
  ]);
}
