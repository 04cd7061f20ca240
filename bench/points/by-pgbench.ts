/**
 * The same changes without the service: one prepared statement each, sent by pgbench, with the same rows in the same tables.
 * It does less: it takes from one lot where the ledger would take from several, looks for nothing that has run out, and
 * answers nobody twice.
 */
import { findPgbench, pgbench } from "../pgbench.ts";
import { users } from "./accounts.ts";

export type What = "add" | "sub";
export type Whom = "distinct users" | "one hot user";

export const clients = 8;

/** An add makes a new user; a spend is of somebody who has points. `k` is the key, and `u` one of the users, drawn for each. */
const userOf: Readonly<Record<`${What} ${Whom}`, string>> = {
  "add distinct users": "'new_' || :k",
  "sub distinct users": "'u_' || :u",
  "add one hot user": "'hot'",
  "sub one hot user": "'hot'",
};

const now = "date_trunc('milliseconds', clock_timestamp())";

const root: Readonly<Record<What, (user: string) => string>> = {
  add: (user) => `
    insert into point_root as r (user_id, balance, version, updated_at) values (${user}, 1, 1, ${now})
    on conflict (user_id) do update set balance = r.balance + 1, version = r.version + 1, updated_at = excluded.updated_at
    returning user_id, balance, held, version, updated_at as at`,
  sub: (user) => `
    update point_root set balance = balance - 1, version = version + 1, updated_at = ${now}
     where user_id = ${user} and balance >= 1
    returning user_id, balance, held, version, updated_at as at`,
};

const lots: Readonly<Record<What, (user: string) => string>> = {
  add: () => `
    lots as (
      insert into point_lots (lot_id, user_id, granted, remaining, expires_at, version, created_at)
      select id, user_id, 1, 1, 'infinity', version, created_at from booked)`,
  sub: (user) => `
    lots as (
      update point_lots l set remaining = remaining - 1 from booked b
       where l.lot_id = (select lot_id from point_lots where user_id = ${user} and is_open and expires_at > now()
                          order by expires_at, version limit 1)
      returning b.id, l.lot_id),
    uses as (insert into point_lot_uses (transaction_id, lot_id, amount) select id, lot_id, 1 from lots)`,
};

const kinds = {
  add: { kind: "ADD", amount: "1", event: "PointsGranted" },
  sub: { kind: "SUB", amount: "-1", event: "PointsSpent" },
} as const;

function statement(what: What, whom: Whom): string {
  const user = userOf[`${what} ${whom}`];
  const { kind, amount, event } = kinds[what];
  const scope = `pgbench PUT /point/${what}`;
  return `
    with changed as (${root[what](user)}),
    booked as (
      insert into point_transactions (id, idempotency_key, user_id, point_amount, kind, moved, balance_after, held_after,
                                      version, effective_at, created_at)
      select uuidv7(), '${scope} ' || :k, user_id, ${amount}, '${kind}', 1, balance, held, version, at, at from changed
      returning id, user_id, balance_after, version, created_at),
    ${lots[what](user)},
    events as (
      insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
      select event_id, '${event}', 'points.events', user_id, version,
             jsonb_build_object('event_id', event_id, 'event_type', '${event}', 'occurred_at', created_at,
               'version', version::text, 'user_id', user_id, 'transaction_id', id, 'point_amount', '1',
               'balance', balance_after::text)
        from (select uuidv7() as event_id, * from booked) e)
    insert into idempotency_keys
      (scope, idem_key, request_hash, response_status, response_content_type, response_body, expires_at)
    select '${scope}', 'k' || :k, sha256(id::text::bytea), 200, 'application/json; charset=utf-8',
           convert_to(jsonb_build_object('transaction_id', id, 'user_id', user_id, 'kind', '${kind}', 'point_amount',
             ${amount}, 'moved', 1, 'balance', balance_after, 'held', 0, 'version', version, 'created_at', created_at)::text,
             'utf8'), now() + interval '24 hours'
      from booked`;
}

export interface Changes {
  readonly url: string;
  readonly what: What;
  readonly whom: Whom;
  readonly seconds: number;
}

/** Changes per second. */
export async function pgbenchChanges({ url, what, whom, seconds }: Changes): Promise<number> {
  const drawn = `\\set k random(1, 9000000000000000000)\n\\set u random(1, ${users})\n`;
  const sql = `${drawn}${statement(what, whom).replaceAll("\n", " ")};\n`;
  return pgbench({ file: await findPgbench(), url, schema: "points", sql, clients, seconds });
}
