/** Loads from locked users what the changes need, in one statement. */
import type { Tx } from "@todoke/kernel/db";
import {
  type Account,
  type Hold,
  type Lot,
  type LotUse,
  pointsMax,
  type ReferredTransaction,
} from "../ledger/account.ts";
import { type Change, isGrant } from "../ledger/changes.ts";
import { holdIds, type LockedRoot, refundedIds } from "./lock-roots.ts";
import { timeSql } from "./time.ts";

/** One change uses no more lots than this, so that the statement that writes them stays within its timeout. */
const lotsMax = 10_000;

/** Expired rows posted per user and batch. The rest cannot be spent either; the next change posts it. */
const expiredMax = 100;

/**
 * `spendable` walks a user's lots in spending order and stops at the wanted amount, so further lots are not read. All uses
 * of a hold or spend are read, or a return would be too small. Lookups are LATERAL … LIMIT (or OFFSET 0), so that they stay
 * index probes with any statistics.
 */
export const loadAccountsSql = `
with recursive input as materialized (
  select * from jsonb_to_recordset($1::jsonb) as i(user_id text, at timestamptz, wanted numeric)
),
spendable as (
  select i.user_id, i.wanted, l.lot_id, l.expires_at, l.version, l.remaining::numeric as reached, 1 as lots
    from input i cross join lateral (
           select l.lot_id, l.expires_at, l.version, l.remaining from point_lots l
            where l.user_id = i.user_id and l.is_open and l.expires_at > i.at
            order by l.expires_at, l.version limit 1) l
   where i.wanted > 0
  union all
  select s.user_id, s.wanted, l.lot_id, l.expires_at, l.version, s.reached + l.remaining, s.lots + 1
    from spendable s cross join lateral (
           select l.lot_id, l.expires_at, l.version, l.remaining from point_lots l
            where l.user_id = s.user_id and l.is_open and (l.expires_at, l.version) > (s.expires_at, s.version)
            order by l.expires_at, l.version limit 1) l
   where s.reached < s.wanted and s.lots < ${lotsMax}
),
expired as materialized (
  select l.lot_id from input i cross join lateral (
           select l.lot_id from point_lots l where l.user_id = i.user_id and l.is_open and l.expires_at <= i.at
            order by l.expires_at, l.version limit ${expiredMax}) l
),
holds as materialized (
  select h.* from unnest($2::uuid[]) as i(hold_id) cross join lateral (
           select h.* from point_holds h where h.hold_id = i.hold_id limit 1) h
  union
  select h.* from input i cross join lateral (
           select h.* from point_holds h where h.user_id = i.user_id and h.status = 'HELD' and h.ends_at <= i.at
            order by h.ends_at limit ${expiredMax}) h
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
  select l.* from (select lot_id from spendable union select lot_id from expired union select lot_id from uses) i
   cross join lateral (select l.* from point_lots l where l.lot_id = i.lot_id limit 1) l
)
select
  (select jsonb_agg(jsonb_build_object('lotId', lot_id, 'userId', user_id, 'granted', granted::text,
            'remaining', remaining::text, 'expiresAt', ${timeSql("expires_at")}, 'version', version::text,
            'createdAt', ${timeSql("created_at")})) from lots) as lots,
  (select jsonb_agg(jsonb_build_object('transactionId', transaction_id, 'lotId', lot_id, 'amount', amount::text,
            'returned', returned::text)) from uses) as uses,
  (select jsonb_agg(jsonb_build_object('holdId', hold_id, 'userId', user_id, 'amount', amount::text,
            'captured', captured::text, 'released', released::text, 'status', status, 'endsAt', ${timeSql("ends_at")},
            'createdAt', ${timeSql("created_at")}, 'updatedAt', ${timeSql("updated_at")})) from holds) as holds,
  (select jsonb_agg(jsonb_build_object('transactionId', id, 'userId', user_id, 'kind', kind, 'refersTo', refers_to))
     from referred) as referred,
  (select coalesce(array_agg(user_id), '{}') from spendable where lots = ${lotsMax} and reached < wanted) as "usersWithMoreLots"`;

/** A row as JSON: bigint as text. */
type JsonRow<T> = { readonly [Name in keyof T]: T[Name] extends bigint ? string : T[Name] };

interface Loaded {
  readonly lots: readonly JsonRow<Lot>[] | null;
  readonly uses: readonly JsonRow<LotUse>[] | null;
  readonly holds: readonly JsonRow<Hold>[] | null;
  readonly referred: readonly (ReferredTransaction & { readonly userId: string })[] | null;
  readonly usersWithMoreLots: readonly string[];
}

const nothing: Loaded = { lots: null, uses: null, holds: null, referred: null, usersWithMoreLots: [] };

export async function loadAccounts(
  tx: Tx,
  roots: readonly LockedRoot[],
  changes: readonly Change[],
): Promise<Account[]> {
  const spends = Map.groupBy(changes.filter(isSpend), userIdOf);
  const spendableMax = spendableMaxDuring(changes);
  const [holds, refunded] = [holdIds(changes), refundedIds(changes)];
  // A user without transactions has neither lots nor holds.
  const input = roots
    .filter(({ version }) => version > 0n)
    .map((root) => {
      const max = spendableMax(root);
      const wanted = sum((spends.get(root.userId) ?? []).filter(({ amount }) => amount <= max));
      return { user_id: root.userId, at: root.at, wanted: wanted.toString() };
    });
  if (input.length + holds.length + refunded.length === 0) return toAccounts(roots, nothing);
  const { rows } = await tx.query<Loaded>({
    name: "load point accounts",
    text: loadAccountsSql,
    values: [JSON.stringify(input), holds, refunded],
  });
  return toAccounts(roots, rows[0] as Loaded);
}

const isSpend = (change: Change) => change.kind === "SUB" || change.kind === "HOLD";
const userIdOf = ({ userId }: { readonly userId: string }) => userId;

/** The most a user can have during these changes. Lots are not loaded for a larger spend, which is refused. */
function spendableMaxDuring(changes: readonly Change[]): (root: LockedRoot) => bigint {
  if (changes.some((change) => change.kind === "REFUND")) return () => pointsMax;
  const grants = Map.groupBy(changes.filter(isGrant), userIdOf);
  return ({ userId, balance, held }) => balance + held + sum(grants.get(userId) ?? []);
}

const sum = (changes: readonly { readonly amount: bigint }[]): bigint =>
  changes.reduce((total, { amount }) => total + amount, 0n);

function toAccounts(roots: readonly LockedRoot[], loaded: Loaded): Account[] {
  const lots = Map.groupBy((loaded.lots ?? []).map(toLot), userIdOf);
  const owners = new Map((loaded.lots ?? []).map((lot) => [lot.lotId, lot.userId]));
  const uses = Map.groupBy(
    (loaded.uses ?? []).map((use) => ({ ...toUse(use), userId: owners.get(use.lotId) ?? "" })),
    userIdOf,
  );
  const holds = Map.groupBy((loaded.holds ?? []).map(toHold), userIdOf);
  const referred = Map.groupBy(loaded.referred ?? [], userIdOf);
  return roots.map((root) => ({
    ...root,
    lots: lots.get(root.userId) ?? [],
    hasMoreLots: loaded.usersWithMoreLots.includes(root.userId),
    holds: holds.get(root.userId) ?? [],
    uses: uses.get(root.userId) ?? [],
    referred: referred.get(root.userId) ?? [],
  }));
}

const toLot = (lot: JsonRow<Lot>): Lot => ({
  ...lot,
  granted: BigInt(lot.granted),
  remaining: BigInt(lot.remaining),
  version: BigInt(lot.version),
});

const toUse = (use: JsonRow<LotUse>): LotUse => ({
  ...use,
  amount: BigInt(use.amount),
  returned: BigInt(use.returned),
});

const toHold = (hold: JsonRow<Hold>): Hold => ({
  ...hold,
  amount: BigInt(hold.amount),
  captured: BigInt(hold.captured),
  released: BigInt(hold.released),
});
