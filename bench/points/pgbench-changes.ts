/**
 * The baseline for point changes: pgbench writes the same rows with one prepared statement. It does less than the service:
 * it spends from one lot only, expires nothing and replays no response.
 */
import { findPgbench, pgbench } from "../pgbench.ts";
import { users } from "./accounts.ts";

export type Operation = "add" | "sub";
export type UserChoice = "distinct users" | "one hot user";

export const clients = 8;

/** An add creates a user; a sub is by a user with points. `k` is a random key, `u` a random user. */
const userSql: Readonly<Record<`${Operation} ${UserChoice}`, string>> = {
  "add distinct users": "'new_' || :k",
  "sub distinct users": "'u_' || :u",
  "add one hot user": "'hot'",
  "sub one hot user": "'hot'",
};

const now = "date_trunc('milliseconds', clock_timestamp())";

const balanceSql: Readonly<Record<Operation, (user: string) => string>> = {
  add: (user) => `
    insert into point_root as r (user_id, balance, version, updated_at) values (${user}, 1, 1, ${now})
    on conflict (user_id) do update set balance = r.balance + 1, version = r.version + 1, updated_at = excluded.updated_at
    returning user_id, balance, held, version, updated_at as at`,
  sub: (user) => `
    update point_root set balance = balance - 1, version = version + 1, updated_at = ${now}
     where user_id = ${user} and balance >= 1
    returning user_id, balance, held, version, updated_at as at`,
};

const lotsSql: Readonly<Record<Operation, (user: string) => string>> = {
  add: () => `
    lots as (
      insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
      select id, user_id, 1, 1, 'infinity', version, created_at from posted)`,
  sub: (user) => `
    lots as (
      update point_lots l set remaining = remaining - 1 from posted b
       where l.lot_id = (select lot_id from point_lots where user_id = ${user} and is_open and expires_at > now()
                          order by expires_at, version limit 1)
      returning b.id, l.lot_id),
    uses as (insert into point_lot_uses (transaction_id, lot_id, amount) select id, lot_id, 1 from lots)`,
};

const operations = {
  add: { kind: "ADD", amount: "1", event: "PointsGranted" },
  sub: { kind: "SUB", amount: "-1", event: "PointsSpent" },
} as const;

function changeSql(operation: Operation, userChoice: UserChoice): string {
  const user = userSql[`${operation} ${userChoice}`];
  const { kind, amount, event } = operations[operation];
  const scope = `pgbench PUT /point/${operation}`;
  return `
    with changed as (${balanceSql[operation](user)}),
    posted as (
      insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                      version, effective_at, created_at)
      select uuidv7(), '${scope} ' || :k, user_id, ${amount}, '${kind}', 1, balance, held, version, at, at from changed
      returning id, user_id, balance_after, version, created_at),
    ${lotsSql[operation](user)},
    events as (
      insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
      select event_id, '${event}', 'points.events', user_id, version,
             jsonb_build_object('event_id', event_id, 'event_type', '${event}', 'occurred_at', created_at,
               'version', version::text, 'user_id', user_id, 'transaction_id', id, 'point_amount', '1',
               'balance', balance_after::text)
        from (select uuidv7() as event_id, * from posted) e)
    insert into idempotency_keys
      (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
    select '${scope}', 'k' || :k, sha256(id::text::bytea), 200, 'application/json; charset=utf-8',
           convert_to(jsonb_build_object('transaction_id', id, 'user_id', user_id, 'kind', '${kind}', 'point_amount',
             ${amount}, 'moved', 1, 'balance', balance_after, 'held', 0, 'version', version, 'created_at', created_at)::text,
             'utf8'), now() + interval '24 hours'
      from posted`;
}

export interface PgbenchRun {
  readonly url: string;
  readonly operation: Operation;
  readonly userChoice: UserChoice;
  readonly seconds: number;
}

/** Returns changes per second. */
export async function pgbenchChanges({ url, operation, userChoice, seconds }: PgbenchRun): Promise<number> {
  const randomVariables = `\\set k random(1, 9000000000000000000)\n\\set u random(1, ${users})\n`;
  const sql = `${randomVariables}${changeSql(operation, userChoice).replaceAll("\n", " ")};\n`;
  return pgbench({ file: await findPgbench(), url, schema: "points", sql, clients, seconds });
}
