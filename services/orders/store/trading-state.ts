/** The kill switch: what may be sent, over all and per instrument. Kept in the database, so that a restart changes nothing. */
import { type Db, type Queryable, statement, utcText } from "@todoke/kernel/db";

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

/** Who set it and why is kept by the same statement. */
export async function upsertTradingState(
  db: Db,
  { scope, mode, reason, set_by }: NewTradingState,
): Promise<TradingState> {
  const { rows } = await statement<TradingState>(db, {
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
