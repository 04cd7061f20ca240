/** What the watched tables went through, change by change: leases, fences, attempts, and the edges of their states. */
import type { Evidence } from "../evidence.ts";
import type { InvariantName, Violation } from "../invariants.ts";
import { services } from "../services/index.ts";
import type { Transition, WatchedTable } from "../watch.ts";
import { groupBy } from "./group.ts";

const busDeliveries: WatchedTable = {
  table: "bus_deliveries",
  key: "delivery_id",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "DONE", dead: "DEAD" },
  batchMax: 100,
};

export const watchedTables: readonly WatchedTable[] = [...services.flatMap(({ tables }) => tables), busDeliveries];

const breach = (invariant: InvariantName, what: string): Violation => ({ invariant, what });

const nameOf = (t: Transition): string => `${t.table_name} ${t.key} (change ${t.id}, by ${t.role})`;

export function checkClaims({ transitions }: Evidence): Violation[] {
  return watchedTables.flatMap((table) => {
    const changes = transitions.filter((change) => change.table_name === table.table);
    return [
      ...changes.flatMap((change) => checkChange(change, table)),
      ...checkHolders(changes),
      ...checkBatches(changes, table),
    ];
  });
}

/** A claim is the one change that raises the epoch. */
export const isClaim = (change: Transition): boolean =>
  change.new_epoch !== null && change.old_epoch !== null && change.new_epoch !== change.old_epoch;

function checkChange(change: Transition, { states: s, more = [] }: WatchedTable): Violation[] {
  const { old_status: from, new_status: to } = change;
  if (to === null)
    return from === s.done ? [] : [breach("unfinished-is-kept", `${nameOf(change)} was removed while ${from}`)];
  const edges = [
    [s.ready, s.claimed],
    [s.claimed, s.claimed],
    [s.claimed, s.done],
    [s.claimed, s.ready],
    [s.claimed, s.dead],
    [s.dead, s.ready],
  ];
  if (!edges.some(([a, b]) => a === from && b === to) && !more.includes(`${from}>${to}`))
    return [breach("allowed-transitions", `${nameOf(change)} went from ${from} to ${to}`)];
  return to === s.claimed ? checkTaken(change, s) : [];
}

/** A row that is claimed now: by a claim, or by a renewal of the one before. */
function checkTaken(change: Transition, { ready }: WatchedTable["states"]): Violation[] {
  const { at, old_status, old_lease, old_due } = change;
  if (!isClaim(change)) {
    if (old_status !== ready) return []; // A renewal.
    return [breach("claim-counts", `${nameOf(change)} was claimed, and its epoch stayed ${change.new_epoch}`)];
  }
  const found: Violation[] = [];
  if (change.new_epoch !== (change.old_epoch ?? 0) + 1 || change.new_attempts !== (change.old_attempts ?? 0) + 1)
    found.push(breach("claim-counts", `${nameOf(change)} was claimed, and attempts went to ${change.new_attempts}`));
  if (old_lease !== null && old_lease > at)
    found.push(
      breach("lease-is-respected", `${nameOf(change)} was claimed ${(old_lease - at).toFixed(0)} ms too soon`),
    );
  if (old_status === ready && old_due !== null && old_due > at)
    found.push(breach("retries-wait", `${nameOf(change)} was claimed ${(old_due - at).toFixed(0)} ms before its time`));
  return found;
}

/** Whoever claimed a row is who renews, settles and releases it. */
function checkHolders(changes: readonly Transition[]): Violation[] {
  return [...groupBy(changes, ({ key }) => key).values()].flatMap((its) => {
    let holder: string | undefined;
    return its.flatMap((change) => {
      if (isClaim(change)) {
        holder = change.role;
        return [];
      }
      // Not held: a redrive, or a removal.
      if (change.old_lease === null || holder === undefined || change.role === holder) return [];
      return [breach("only-the-holder-settles", `${nameOf(change)} made it ${change.new_status}; ${holder} held it`)];
    });
  });
}

function checkBatches(changes: readonly Transition[], { table, batchMax }: WatchedTable): Violation[] {
  return [...groupBy(changes.filter(isClaim), ({ tx }) => tx)].flatMap(([tx, batch]) =>
    batch.length > batchMax
      ? [
          breach(
            "claim-within-limit",
            `transaction ${tx} claimed ${batch.length} rows of ${table}; ${batchMax} is a batch`,
          ),
        ]
      : [],
  );
}
