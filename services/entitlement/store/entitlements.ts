/** Reads of what users have. */
import { type Db, utcText } from "@todoke/kernel/db";

type EntitlementStatus = "ACTIVE" | "REVOKED" | "EXPIRED";

export interface EntitlementRow {
  readonly stock_keeping_unit: string;
  readonly status: EntitlementStatus;
  readonly version: number;
  readonly updated_at: string;
  /** There only if it is set. */
  readonly expires_at?: string;
}

type Read = Omit<EntitlementRow, "expires_at"> & { readonly expires_at: string | null };

/** What has run out is EXPIRED from that moment on, whether or not it has been told yet. */
const columns = `stock_keeping_unit,
  case when status = 'ACTIVE' and expires_at <= now() then 'EXPIRED' else status end as status,
  version::float8 as version, ${utcText("updated_at")} as updated_at, ${utcText("expires_at")} as expires_at`;

const viewOf = ({ expires_at, ...row }: Read): EntitlementRow => (expires_at === null ? row : { ...row, expires_at });

export interface EntitlementsPage {
  readonly userId: string;
  readonly status?: EntitlementStatus | undefined;
  /** The last product of the page before; the first page begins after "", which no product is called. */
  readonly after: string;
  readonly limit: number;
}

/** In the order of the products' names. */
export async function selectEntitlements(db: Db, page: EntitlementsPage): Promise<EntitlementRow[]> {
  const { rows } = await db.query<Read>({
    name: "select entitlements",
    text: `select * from (select ${columns} from entitlements where user_id = $1 and stock_keeping_unit > $2) e
            where $3::text is null or status = $3 order by stock_keeping_unit limit $4`,
    values: [page.userId, page.after, page.status ?? null, page.limit],
  });
  return rows.map(viewOf);
}

export interface EntitlementName {
  readonly userId: string;
  readonly stockKeepingUnit: string;
}

/** Each in its place; null where there is none. An index probe each, whatever the planner believes of the table. */
export async function selectEach(db: Db, names: readonly EntitlementName[]): Promise<(EntitlementRow | null)[]> {
  const { rows } = await db.query<Read & { place: number }>({
    name: "select each entitlement",
    text: `select i.place::int, e.*
             from unnest($1::text[], $2::text[]) with ordinality as i(user_id, named, place)
            cross join lateral (select ${columns} from entitlements e
                                 where e.user_id = i.user_id and e.stock_keeping_unit = i.named limit 1) e`,
    values: [names.map((name) => name.userId), names.map((name) => name.stockKeepingUnit)],
  });
  const found = new Map(rows.map(({ place, ...row }) => [place, viewOf(row)]));
  return names.map((_, index) => found.get(index + 1) ?? null);
}
