/** The statement behind grants and revokes. */
import { type Db, rfc3339Sql, type Tx } from "@todoke/kernel/db";
import { type CommandResult, command, type KeyColumns } from "@todoke/kernel/idempotency";
import { entitlementChanged } from "../events/entitlement-events.ts";

export interface ChangeRow extends KeyColumns {
  readonly caller: string;
  readonly user_id: string;
  readonly stock_keeping_unit: string;
  readonly status: "ACTIVE" | "REVOKED";
  readonly source: string;
  readonly source_id: string;
  readonly expires_at: string | null;
  readonly event_id: string;
  readonly event_type: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type ChangeResult = CommandResult<"already_expired">;

const change = command<ChangeRow, "already_expired">({
  name: "change entitlements",
  columns: `caller text, user_id text, stock_keeping_unit text, status text, source text, source_id text,
    expires_at timestamptz, event_id uuid, event_type text, headers jsonb`,
  refusals: { already_expired: "expires_at <= now()" },
  change: `
changed as (
  insert into entitlements as e (user_id, stock_keeping_unit, status, source, source_id, expires_at)
  select user_id, stock_keeping_unit, status, source, source_id, expires_at from accepted order by user_id, stock_keeping_unit
  on conflict (user_id, stock_keeping_unit) do update
     set status = excluded.status, source = excluded.source, source_id = excluded.source_id,
         expires_at = excluded.expires_at, version = e.version + 1, updated_at = now()
  returning e.user_id, e.stock_keeping_unit, e.version, e.updated_at
),
results as materialized (
  select a.*, c.version, c.updated_at, case c.version when 1 then 201 else 200 end as response_status,
         convert_to('{"user_id":' || to_json(a.user_id) || ',"stock_keeping_unit":' || to_json(a.stock_keeping_unit)
           || ',"status":"' || a.status || '","version":' || c.version || ',"updated_at":"' || c.updated_at || '"'
           || coalesce(',"expires_at":"' || ${rfc3339Sql("a.expires_at")} || '"', '') || '}', 'utf8')
           as response_body
    from accepted a
    join (select user_id, stock_keeping_unit, version, ${rfc3339Sql("updated_at")} as updated_at from changed) c
      on c.user_id = a.user_id and c.stock_keeping_unit = a.stock_keeping_unit
),
insert_audit as (
  insert into entitlement_audit (user_id, stock_keeping_unit, version, action, source, source_id, caller, event_id)
  select user_id, stock_keeping_unit, version, case status when 'ACTIVE' then 'GRANT' else 'REVOKE' end,
         source, source_id, caller, event_id
    from results
)`,
  events: entitlementChanged,
});

export const changeEntitlementsSql = change.sql;

/** Applies the changes and returns their results in input order. No two rows may share a key or an entitlement. */
export const changeEntitlements = (db: Db | Tx, rows: readonly ChangeRow[]): Promise<readonly ChangeResult[]> =>
  change.run(db, rows);
