/** Reads of users, and their locks. */
import type { Role } from "@todoke/http";
import { type Queryable, type Tx, utcText } from "@todoke/kernel/db";

type UserStatus = "ACTIVE" | "SUSPENDED" | "DELETED";

/** A user as everybody sees it who may. What is not set is not there. */
export interface UserView {
  readonly user_id: string;
  readonly status: UserStatus;
  readonly display_name?: string;
  readonly locale?: string;
  readonly email?: string;
  readonly roles: Role[];
  readonly version: number;
  readonly suspended_until?: string;
  readonly suspended_reason?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A suspension that has run out is over from that moment on, whether or not that has been told yet. */
const isOver = `u.status = 'SUSPENDED' and u.suspended_until <= now()`;

/** Of `users u`. The order is that of the answers. */
export const userColumns = `u.user_id, case when ${isOver} then 'ACTIVE' else u.status end as status,
  u.display_name, u.locale, u.email,
  array(select r.role from account_roles r where r.user_id = u.user_id order by r.role) as roles,
  u.version::float8 as version,
  case when ${isOver} then null else ${utcText("u.suspended_until")} end as suspended_until,
  case when ${isOver} then null else u.suspended_reason end as suspended_reason,
  ${utcText("u.created_at")} as created_at, ${utcText("u.updated_at")} as updated_at`;

/** A row as it is shown: null is "not there". */
export const shown = <View>(row: object): View =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as View;

export async function selectUser(db: Queryable, userId: string): Promise<UserView | undefined> {
  const { rows } = await db.query({
    name: "select user",
    text: `select ${userColumns} from users u where u.user_id = $1`,
    values: [userId],
  });
  return rows[0] && shown(rows[0]);
}

/** Each in its place; null where there is none. An index probe each, whatever the planner believes of the table. */
export async function selectEach(db: Queryable, userIds: readonly string[]): Promise<(UserView | null)[]> {
  const { rows } = await db.query<UserView & { place: number }>({
    name: "select each user",
    text: `select i.place::int, e.* from unnest($1::text[]) with ordinality as i(user_id, place)
            cross join lateral (select ${userColumns} from users u where u.user_id = i.user_id limit 1) e`,
    values: [userIds],
  });
  const found = new Map(rows.map(({ place, ...row }) => [place, shown<UserView>(row)]));
  return userIds.map((_, index) => found.get(index + 1) ?? null);
}

/**
 * Nobody else changes these users, nor their roles, until the transaction ends. In the order of their ids, so that two
 * who act on each other wait and never deadlock. Read them afterwards: what this statement would see of the roles is
 * from before it waited.
 */
export async function lockUsers(tx: Tx, userIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "lock users",
    text: `select from users where user_id = any($1) order by user_id for update`,
    values: [userIds],
  });
}

/**
 * Whether there is an active admin besides this one. Admins who give up their role ask one after the other, until they
 * commit: of the last two, the second one hears that it is the last.
 */
export async function isLastAdmin(tx: Tx, userId: string): Promise<boolean> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('leaving admins ' || current_schema(), 0))`);
  const { rowCount } = await tx.query({
    name: "other admins",
    text: `select from account_roles r join users u on u.user_id = r.user_id
            where r.role = 'ADMIN' and r.user_id <> $1 and (u.status = 'ACTIVE' or ${isOver}) limit 1`,
    values: [userId],
  });
  return rowCount === 0;
}

export interface UserSearch {
  readonly user_id?: string;
  readonly email?: string;
  readonly identity?: { readonly provider: string; readonly subject: string };
  /** The last user of the page before; "" for the first page. */
  readonly after: string;
  readonly limit: number;
}

/** Those of whom all that is asked for is true, in the order of their ids, which is that of their first log-ins. */
export async function searchUsers(db: Queryable, search: UserSearch): Promise<UserView[]> {
  const values: unknown[] = [search.after, search.limit];
  const value = (given: unknown) => `$${values.push(given)}`;
  const asked = [
    ...(search.user_id === undefined ? [] : [`u.user_id = ${value(search.user_id)}`]),
    ...(search.email === undefined ? [] : [`lower(u.email) = lower(${value(search.email)})`]),
    ...(search.identity === undefined ? [] : [isNamedBy(search.identity, value)]),
  ];
  const { rows } = await db.query({
    text: `select ${userColumns} from users u
            where ${["u.user_id > $1", ...asked].join(" and ")} order by u.user_id limit $2`,
    values,
  });
  return rows.map((row) => shown(row));
}

const isNamedBy = ({ provider, subject }: NonNullable<UserSearch["identity"]>, value: (given: unknown) => string) =>
  `u.user_id = (select i.user_id from identities i where i.provider = ${value(provider)} and i.subject = ${value(subject)})`;
