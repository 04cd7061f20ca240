/** The highest version of each user that an account event has brought. */
import type { Tx } from "@todoke/kernel/db";

export interface UserVersion {
  readonly userId: string;
  readonly version: number;
}

const raiseUserVersionsSql = `
insert into user_versions as v (user_id, account_version)
select s.user_id, s.account_version from unnest($1::text[], $2::bigint[]) as s(user_id, account_version) order by s.user_id
on conflict (user_id) do update set account_version = excluded.account_version
 where v.account_version < excluded.account_version
returning v.user_id`;

/**
 * Returns the users whose version went up. Each user may be given once. A transaction with the same users waits until this
 * one ends.
 */
export async function raiseUserVersions(tx: Tx, versions: readonly UserVersion[]): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ user_id: string }>({
    name: "raise user versions",
    text: raiseUserVersionsSql,
    values: [versions.map(({ userId }) => userId), versions.map(({ version }) => version)],
  });
  return new Set(rows.map((row) => row.user_id));
}
