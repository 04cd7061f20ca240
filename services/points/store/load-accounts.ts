/** Reads of locked users what the changes at hand need, in one statement. */
import type { Tx } from "@todoke/kernel/db";
import { type Account, type Hold, type Lot, type LotUse, pointsMax, type Referred } from "../ledger/account.ts";
import type { Change } from "../ledger/changes.ts";
import { holdsNamed, type LockedRoot, transactionsNamed } from "./lock-roots.ts";
import { timeText } from "./time.ts";

/** From more lots nothing is taken at once: the statement that writes them must not outlast its timeout. */
const lotsMax = 10_000;

/** What has run out of one user and is booked at once. The rest is never spent either, and the next change books it. */
const overdueMax = 100;

/**
 * `spendable` walks a user's lots in their order and stops when it has what is wanted: a hundred thousand lots behind that
 * are not read. Of a hold or a spend all uses are read, or less would come back than was taken. Whatever is looked up by a
 * key is a LATERAL … LIMIT (or OFFSET 0), so that it stays an index probe whatever the planner believes of the tables.
 */
export const loadText = `
with recursive asked as materialized (
  select * from jsonb_to_recordset($1::jsonb) as a(user_id text, at timestamptz, wanted numeric)
),
spendable as (
  select a.user_id, a.wanted, l.lot_id, l.expires_at, l.version, l.remaining::numeric as reached, 1 as lots
    from asked a cross join lateral (
           select l.lot_id, l.expires_at, l.version, l.remaining from point_lots l
            where l.user_id = a.user_id and l.is_open and l.expires_at > a.at
            order by l.expires_at, l.version limit 1) l
   where a.wanted > 0
  union all
  select s.user_id, s.wanted, l.lot_id, l.expires_at, l.version, s.reached + l.remaining, s.lots + 1
    from spendable s cross join lateral (
           select l.lot_id, l.expires_at, l.version, l.remaining from point_lots l
            where l.user_id = s.user_id and l.is_open and (l.expires_at, l.version) > (s.expires_at, s.version)
            order by l.expires_at, l.version limit 1) l
   where s.reached < s.wanted and s.lots < ${lotsMax}
),
overdue as materialized (
  select l.lot_id from asked a cross join lateral (
           select l.lot_id from point_lots l where l.user_id = a.user_id and l.is_open and l.expires_at <= a.at
            order by l.expires_at, l.version limit ${overdueMax}) l
),
holds as materialized (
  select h.* from unnest($2::uuid[]) as i(hold_id) cross join lateral (
           select h.* from point_holds h where h.hold_id = i.hold_id limit 1) h
  union
  select h.* from asked a cross join lateral (
           select h.* from point_holds h where h.user_id = a.user_id and h.status = 'HELD' and h.ends_at <= a.at
            order by h.ends_at limit ${overdueMax}) h
),
referred as materialized (
  select t.* from unnest($3::uuid[]) as i(id) cross join lateral (
           select t.id, t.user_id, t.kind, t.refers_to from point_transactions t where t.id = i.id limit 1) t
),
uses as materialized (
  select u.* from (select hold_id as id from holds where status = 'HELD'
                   union select case kind when 'SUB' then id when 'CAPTURE' then refers_to end from referred) i
   cross join lateral (select u.* from point_lot_uses u where u.transaction_id = i.id offset 0) u
),
lots as materialized (
  select l.* from (select lot_id from spendable union select lot_id from overdue union select lot_id from uses) i
   cross join lateral (select l.* from point_lots l where l.lot_id = i.lot_id limit 1) l
)
select
  (select jsonb_agg(jsonb_build_object('lotId', lot_id, 'userId', user_id, 'granted', granted::text,
            'remaining', remaining::text, 'expiresAt', ${timeText("expires_at")}, 'version', version::text,
            'createdAt', ${timeText("created_at")})) from lots) as lots,
  (select jsonb_agg(jsonb_build_object('transactionId', transaction_id, 'lotId', lot_id, 'amount', amount::text,
            'returned', returned::text)) from uses) as uses,
  (select jsonb_agg(jsonb_build_object('holdId', hold_id, 'userId', user_id, 'amount', amount::text,
            'captured', captured::text, 'released', released::text, 'status', status, 'endsAt', ${timeText("ends_at")},
            'createdAt', ${timeText("created_at")}, 'updatedAt', ${timeText("updated_at")})) from holds) as holds,
  (select jsonb_agg(jsonb_build_object('transactionId', id, 'userId', user_id, 'kind', kind, 'refersTo', refers_to))
     from referred) as referred,
  (select coalesce(array_agg(user_id), '{}') from spendable where lots = ${lotsMax} and reached < wanted) as "leftOut"`;

/** A value as JSON has it: bigint as text. */
type Textual<T> = { readonly [Name in keyof T]: T[Name] extends bigint ? string : T[Name] };

interface Loaded {
  readonly lots: readonly Textual<Lot>[] | null;
  readonly uses: readonly Textual<LotUse>[] | null;
  readonly holds: readonly Textual<Hold>[] | null;
  readonly referred: readonly (Referred & { readonly userId: string })[] | null;
  readonly leftOut: readonly string[];
}

export async function loadAccounts(
  tx: Tx,
  roots: readonly LockedRoot[],
  changes: readonly Change[],
): Promise<Account[]> {
  const spends = spendsByUser(changes);
  const atMost = pointsAtMost(changes);
  const asked = roots.map((root) => ({
    user_id: root.userId,
    at: root.at,
    wanted: sum((spends.get(root.userId) ?? []).filter((amount) => amount <= atMost(root))).toString(),
  }));
  const { rows } = await tx.query<Loaded>({
    name: "load point accounts",
    text: loadText,
    values: [JSON.stringify(asked), holdsNamed(changes), transactionsNamed(changes)],
  });
  return accountsOf(roots, rows[0] as Loaded);
}

function spendsByUser(changes: readonly Change[]): Map<string, bigint[]> {
  const spends = new Map<string, bigint[]>();
  for (const change of changes) {
    if (change.kind !== "SUB" && change.kind !== "HOLD") continue;
    const amounts = spends.get(change.userId) ?? [];
    amounts.push(change.amount);
    spends.set(change.userId, amounts);
  }
  return spends;
}

/** More than this a user cannot come to have in the course of these changes: a spend of more will be refused unread. */
function pointsAtMost(changes: readonly Change[]): (root: LockedRoot) => bigint {
  if (changes.some((change) => change.kind === "REFUND")) return () => pointsMax;
  const added = new Map<string, bigint>();
  for (const change of changes) {
    if (change.kind === "ADD" || change.kind === "GRANT")
      added.set(change.userId, (added.get(change.userId) ?? 0n) + change.amount);
  }
  return ({ userId, balance, held }) => balance + held + (added.get(userId) ?? 0n);
}

const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);

function accountsOf(roots: readonly LockedRoot[], loaded: Loaded): Account[] {
  const lots = byUser((loaded.lots ?? []).map(lotOf));
  const owners = new Map((loaded.lots ?? []).map((lot) => [lot.lotId, lot.userId]));
  const uses = byUser((loaded.uses ?? []).map((use) => ({ ...useOf(use), userId: owners.get(use.lotId) ?? "" })));
  const holds = byUser((loaded.holds ?? []).map(holdOf));
  const referred = byUser(loaded.referred ?? []);
  return roots.map((root) => ({
    ...root,
    lots: lots.get(root.userId) ?? [],
    lotsLeftOut: loaded.leftOut.includes(root.userId),
    holds: holds.get(root.userId) ?? [],
    uses: uses.get(root.userId) ?? [],
    referred: referred.get(root.userId) ?? [],
  }));
}

function byUser<Row extends { readonly userId: string }>(rows: readonly Row[]): Map<string, Row[]> {
  return Map.groupBy(rows, (row) => row.userId);
}

const lotOf = (lot: Textual<Lot>): Lot => ({
  ...lot,
  granted: BigInt(lot.granted),
  remaining: BigInt(lot.remaining),
  version: BigInt(lot.version),
});

const useOf = (use: Textual<LotUse>): LotUse => ({
  ...use,
  amount: BigInt(use.amount),
  returned: BigInt(use.returned),
});

const holdOf = (hold: Textual<Hold>): Hold => ({
  ...hold,
  amount: BigInt(hold.amount),
  captured: BigInt(hold.captured),
  released: BigInt(hold.released),
});
