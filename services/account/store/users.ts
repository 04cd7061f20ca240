/** Reads and locks of users. */
import type { Role } from "@todoke/http";
import { omitNulls, type Queryable, rfc3339Sql, type Tx } from "@todoke/kernel/db";

type UserStatus = "ACTIVE" | "SUSPENDED" | "DELETED";

/** A user as the API returns it. Fields that are not set are missing. */
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

/** A suspension is over from its end time on, even before the expiry worker has ended it. */
const hasEnded = `u.status = 'SUSPENDED' and u.suspended_until <= now()`;

/** Columns of `users u`, in the order of the response. */
export const userColumns = `u.user_id, case when ${hasEnded} then 'ACTIVE' else u.status end as status,
  u.display_name, u.locale, u.email,
  array(select r.role from account_roles r where r.user_id = u.user_id order by r.role) as roles,
  u.version::float8 as version,
  case when ${hasEnded} then null else ${rfc3339Sql("u.suspended_until")} end as suspended_until,
  case when ${hasEnded} then null else u.suspended_reason end as suspended_reason,
  ${rfc3339Sql("u.created_at")} as created_at, ${rfc3339Sql("u.updated_at")} as updated_at`;

export async function selectUser(db: Queryable, userId: string): Promise<UserView | undefined> {
  const { rows } = await db.query({
    name: "select user",
    text: `select ${userColumns} from users u where u.user_id = $1`,
    values: [userId],
  });
  return rows[0] && omitNulls(rows[0]);
}

/** Results in input order; null where there is no user. LATERAL keeps this an index probe per id under any plan. */
export async function selectEach(db: Queryable, userIds: readonly string[]): Promise<(UserView | null)[]> {
  const { rows } = await db.query<UserView & { ordinal: number }>({
    name: "select each user",
    text: `select i.ordinal::int, e.* from unnest($1::text[]) with ordinality as i(user_id, ordinal)
            cross join lateral (select ${userColumns} from users u where u.user_id = i.user_id limit 1) e`,
    values: [userIds],
  });
  const found = new Map(rows.map(({ ordinal, ...row }) => [ordinal, omitNulls<UserView>(row)]));
  return userIds.map((_, index) => found.get(index + 1) ?? null);
}

/** The names of those users who have one, by an index probe per id. */
export async function selectDisplayNames(
  db: Queryable,
  userIds: readonly string[],
): Promise<{ user_id: string; display_name: string }[]> {
  const { rows } = await db.query({
    name: "select display names",
    text: `select u.user_id, u.display_name from unnest($1::text[]) as i(user_id)
            cross join lateral (select user_id, display_name from users u
                                 where u.user_id = i.user_id and u.display_name is not null limit 1) u`,
    values: [userIds],
  });
  return rows;
}

/**
 * Locks users and their roles against other changes until the transaction ends. Rows are locked in the order of their ids,
 * so that two users who act on each other cannot deadlock. Read the users afterwards: this statement's snapshot of the
 * roles is older than the locks.
 */
export async function lockUsers(tx: Tx, userIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "lock users",
    text: `select from users where user_id = any($1) order by user_id for update`,
    values: [userIds],
  });
}

/**
 * Returns true if no other admin is active. The advisory lock serialises admins who give up their role, until they commit:
 * of the last two, the second is the last admin.
 */
export async function isLastAdmin(tx: Tx, userId: string): Promise<boolean> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('leaving admins ' || current_schema(), 0))`);
  const { rowCount } = await tx.query({
    name: "other admins",
    text: `select from account_roles r join users u on u.user_id = r.user_id
            where r.role = 'ADMIN' and r.user_id <> $1 and (u.status = 'ACTIVE' or ${hasEnded}) limit 1`,
    values: [userId],
  });
  return rowCount === 0;
}

export interface UserSearch {
  readonly user_id?: string;
  readonly email?: string;
  readonly identity?: { readonly provider: string; readonly subject: string };
  /** The last user of the previous page; "" for the first page. */
  readonly after: string;
  readonly limit: number;
}

/** Users who match all filters, in the order of their ids, which is the order of creation. */
export async function searchUsers(db: Queryable, search: UserSearch): Promise<UserView[]> {
  const values: unknown[] = [search.after, search.limit];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const filters = [
    ...(search.user_id === undefined ? [] : [`u.user_id = ${parameter(search.user_id)}`]),
    ...(search.email === undefined ? [] : [`lower(u.email) = lower(${parameter(search.email)})`]),
    ...(search.identity === undefined ? [] : [hasIdentity(search.identity, parameter)]),
  ];
  const { rows } = await db.query({
    text: `select ${userColumns} from users u
            where ${["u.user_id > $1", ...filters].join(" and ")} order by u.user_id limit $2`,
    values,
  });
  return rows.map((row) => omitNulls(row));
}

export interface NameSearch {
  /** The beginning of the name; upper and lower case are equal. */
  readonly prefix: string;
  /** Name and id of the last user of the previous page. */
  readonly after: readonly [name: string, userId: string] | undefined;
  readonly limit: number;
}

/** In the order of their names, which is that of the index. */
export async function searchUsersByName(
  db: Queryable,
  { prefix, after, limit }: NameSearch,
): Promise<(UserView & { readonly sort_name: string })[]> {
  // No character is above U+10FFFF, so the range has every name with the prefix.
  const { rows } = await db.query({
    name: "search users by name",
    text: `select ${userColumns}, ${sortName} as sort_name
             from users u
            where u.display_name is not null and ${sortName} >= lower($1) and ${sortName} < lower($1) || chr(1114111)
              and (${sortName}, u.user_id) > ($2::text collate "C", $3::text)
            order by ${sortName}, u.user_id limit $4`,
    values: [prefix, ...(after ?? ["", ""]), limit],
  });
  return rows.map((row) => omitNulls(row));
}

const sortName = `(lower(u.display_name) collate "C")`;

const hasIdentity = (
  { provider, subject }: NonNullable<UserSearch["identity"]>,
  parameter: (value: unknown) => string,
) =>
  `u.user_id = (select i.user_id from identities i
                 where i.provider = ${parameter(provider)} and i.subject = ${parameter(subject)})`;
