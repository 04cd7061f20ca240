/** Up to which version account has told of each user. */
import type { Tx } from "@todoke/kernel/db";

export interface UserVersion {
  readonly userId: string;
  readonly version: number;
}

const raiseText = `
insert into user_versions as v (user_id, account_version)
select s.user_id, s.account_version from unnest($1::text[], $2::bigint[]) as s(user_id, account_version) order by s.user_id
on conflict (user_id) do update set account_version = excluded.account_version
 where v.account_version < excluded.account_version
returning v.user_id`;

/**
 * The users of whom this was news: a version that is not higher than the one seen before changes nothing. A user once at the
 * most. Whoever tells of the same users at this moment waits until the transaction ends.
 */
export async function raiseUserVersions(tx: Tx, seen: readonly UserVersion[]): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ user_id: string }>({
    name: "raise user versions",
    text: raiseText,
    values: [seen.map(({ userId }) => userId), seen.map(({ version }) => version)],
  });
  return new Set(rows.map((row) => row.user_id));
}
