/** Reads of entitlements. */
import { type Db, rfc3339Sql } from "@todoke/kernel/db";

type EntitlementStatus = "ACTIVE" | "REVOKED" | "EXPIRED";

export interface Entitlement {
  readonly stock_keeping_unit: string;
  readonly status: EntitlementStatus;
  readonly version: number;
  readonly updated_at: string;
  readonly expires_at?: string;
}

type EntitlementRow = Omit<Entitlement, "expires_at"> & { readonly expires_at: string | null };

/** An entitlement is EXPIRED from its end time on, even before the expiry worker has written it. */
const columns = `stock_keeping_unit,
  case when status = 'ACTIVE' and expires_at <= now() then 'EXPIRED' else status end as status,
  version::float8 as version, ${rfc3339Sql("updated_at")} as updated_at, ${rfc3339Sql("expires_at")} as expires_at`;

const toEntitlement = ({ expires_at, ...row }: EntitlementRow): Entitlement =>
  expires_at === null ? row : { ...row, expires_at };

export interface EntitlementsPage {
  readonly userId: string;
  readonly status?: EntitlementStatus | undefined;
  /** The last product of the previous page; "" for the first page. */
  readonly after: string;
  readonly limit: number;
}

/** Sorted by product. */
export async function selectEntitlements(db: Db, page: EntitlementsPage): Promise<Entitlement[]> {
  const { rows } = await db.query<EntitlementRow>({
    name: "select entitlements",
    text: `select * from (select ${columns} from entitlements where user_id = $1 and stock_keeping_unit > $2) e
            where $3::text is null or status = $3 order by stock_keeping_unit limit $4`,
    values: [page.userId, page.after, page.status ?? null, page.limit],
  });
  return rows.map(toEntitlement);
}

/** The first rows of each user, in input order, by an index range per user. */
export async function selectFirstOfEach(
  db: Db,
  userIds: readonly string[],
  limit: number,
): Promise<readonly Entitlement[][]> {
  const { rows } = await db.query<EntitlementRow & { ordinal: number }>({
    name: "select first entitlements",
    text: `select i.ordinal::int, e.* from unnest($1::text[]) with ordinality as i(user_id, ordinal)
            cross join lateral (select ${columns} from entitlements e
                                 where e.user_id = i.user_id order by stock_keeping_unit limit $2) e
            order by i.ordinal, e.stock_keeping_unit`,
    values: [userIds, limit],
  });
  const found: Entitlement[][] = userIds.map(() => []);
  for (const { ordinal, ...row } of rows) found[ordinal - 1]?.push(toEntitlement(row));
  return found;
}

export interface EntitlementName {
  readonly userId: string;
  readonly stockKeepingUnit: string;
}

/** Results in input order; null where there is no entitlement. LATERAL keeps this an index probe per name under any plan. */
export async function selectEach(db: Db, names: readonly EntitlementName[]): Promise<(Entitlement | null)[]> {
  const { rows } = await db.query<EntitlementRow & { ordinal: number }>({
    name: "select each entitlement",
    text: `select i.ordinal::int, e.*
             from unnest($1::text[], $2::text[]) with ordinality as i(user_id, named, ordinal)
            cross join lateral (select ${columns} from entitlements e
                                 where e.user_id = i.user_id and e.stock_keeping_unit = i.named limit 1) e`,
    values: [names.map((name) => name.userId), names.map((name) => name.stockKeepingUnit)],
  });
  const found = new Map(rows.map(({ ordinal, ...row }) => [ordinal, toEntitlement(row)]));
  return names.map((_, index) => found.get(index + 1) ?? null);
}
