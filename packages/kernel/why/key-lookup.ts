/** Finds an idempotency key without its caller and route. */
import { entitlementName, entriesSql } from "./entries-sql.ts";
import type { Lookup } from "./index.ts";

/** Holders of API keys times routes: few. Every scope costs two probes of the primary key, some microseconds. */
const scopesMax = 2_000;

/**
 * The primary key begins with the scope, and an index by key would cost every command an entry more. So the statement goes from one
 * scope to the next by the primary key, and probes the key in each. Scopes of players (`user:<id> …`) are as many as players, and are
 * skipped: a player's command is found by its user.
 */
const scopesSql = `
with recursive scopes(scope, n) as (
  (select k.scope, 1 from idempotency_keys k order by k.scope limit 1)
  union all
  select (select k.scope from idempotency_keys k
           where k.scope > case when s.scope like 'user:%' then greatest(s.scope, 'user;') else s.scope end
           order by k.scope limit 1), s.n + 1
    from scopes s where s.scope is not null and s.n < ${scopesMax}
)`;

const body =
  "case when k.response_content_type like 'application/json%' then convert_from(k.response_body, 'utf8')::jsonb end";

/** The request that used the key: its response, and the ids that the response names. */
export const keyLookup: Lookup = {
  by: "key",
  shape: "text",
  sql: `${scopesSql}
${entriesSql({
  kind: "'request'",
  id: "k.idem_key",
  at: "k.created_at",
  state: "k.response_status",
  process: "k.scope",
  detail:
    "k.scope || coalesce(': ' || nullif(concat_ws(' ', k.body ->> 'code', k.body ->> 'status', k.body ->> 'detail'), ''), '')",
  links: [
    ["user", "k.body -> 'user_id'"],
    ["reservation", "case when k.body ? 'execute_at' then k.body -> 'id' end"],
    ["transaction", "k.body -> 'transaction_id'"],
    ["hold", "k.body -> 'hold_id'"],
    ["ticket", "k.body -> 'ticket_id'"],
    ["order", "k.body -> 'client_order_id'"],
    ["entitlement", entitlementName("k.body")],
  ],
  from: `(
    select k.*, ${body} as body from scopes s
     cross join lateral (select * from idempotency_keys k where k.scope = s.scope and k.idem_key = $1 limit 1) k
     where s.scope is not null and s.scope not like 'user:%' limit 20) k`,
})}`,
};
