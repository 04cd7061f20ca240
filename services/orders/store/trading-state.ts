/** The kill switch: what may be sent, over all and per instrument. Kept in the database, so that a restart changes nothing. */
import { type Queryable, type Tx, utcText } from "@todoke/kernel/db";

/** `halt`: nothing goes to the broker. `cancel-only`: cancels do. */
export const tradingModes = ["active", "halt", "cancel-only"] as const;
export type TradingMode = (typeof tradingModes)[number];

/** All instruments. */
export const everything = "*";

export interface TradingState {
  /** "*", or an instrument. */
  readonly scope: string;
  readonly mode: TradingMode;
  readonly reason: string;
  readonly set_by: string;
  readonly set_at: string;
}

const shown = `scope, mode, reason, set_by, ${utcText("set_at")} as set_at`;

/** All that was ever set; whatever is not there is active. */
export async function selectTradingState(db: Queryable): Promise<TradingState[]> {
  const { rows } = await db.query<TradingState>({
    name: "select trading state",
    text: `select ${shown} from trading_state order by scope`,
  });
  return rows;
}

export type NewTradingState = Omit<TradingState, "set_at">;

/** A state as it is set now, and whether it is the doing of one caller alone. */
export interface LockedTradingState {
  readonly mode: TradingMode;
  /** Another who has set it since it was last active; null: nobody else has. */
  readonly othersSince: string | null;
}

/** Nobody else sets this scope until the transaction ends, also where nobody has before. */
export async function lockTradingState(
  tx: Tx,
  { scope, set_by }: Pick<NewTradingState, "scope" | "set_by">,
): Promise<LockedTradingState> {
  await tx.query(
    `select pg_advisory_xact_lock(hashtextextended('trading state ' || current_schema() || ' ' || $1, 0))`,
    [scope],
  );
  const { rows } = await tx.query<LockedTradingState>(
    `select coalesce((select mode from trading_state where scope = $1), 'active') as mode,
            (select a.set_by from trading_state_audit a
              where a.scope = $1 and a.set_by <> $2
                and a.audit_id > coalesce((select max(l.audit_id) from trading_state_audit l
                                            where l.scope = $1 and l.to_mode = 'active'), 0)
              order by a.audit_id desc limit 1) as "othersSince"`,
    [scope, set_by],
  );
  return rows[0] as LockedTradingState;
}

/** Who set it and why is kept by the same statement. */
export async function upsertTradingState(
  tx: Tx,
  { scope, mode, reason, set_by }: NewTradingState,
): Promise<TradingState> {
  const { rows } = await tx.query<TradingState>({
    name: "upsert trading state",
    text: `with before as materialized (select mode from trading_state where scope = $1 for update),
                audited as (
                  insert into trading_state_audit (scope, from_mode, to_mode, reason, set_by)
                  values ($1, coalesce((select mode from before), 'active'), $2, $3, $4)
                )
           insert into trading_state (scope, mode, reason, set_by)
           select $1, $2, $3, $4 from (select count(*) from before) looked -- first of all
           on conflict (scope) do update set mode = excluded.mode, reason = excluded.reason, set_by = excluded.set_by,
                                             set_at = now()
           returning ${shown}`,
    values: [scope, mode, reason, set_by],
  });
  return rows[0] as TradingState;
}
