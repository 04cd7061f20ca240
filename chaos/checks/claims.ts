/** Checks every recorded change of the claimed tables: leases, fences, attempts and transitions. */
import type { Evidence } from "../evidence.ts";
import { type Violation, violation } from "../invariants.ts";
import { services } from "../services/index.ts";
import type { Transition, WatchedTable } from "../watch.ts";
import { groupBy } from "./group.ts";

const busDeliveries: WatchedTable = {
  table: "bus_deliveries",
  key: "delivery_id",
  states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "DONE", dead: "DEAD" },
  // The transaction of its consumer deletes a delivery.
  more: ["PENDING>"],
  batchMax: 100,
};

/** Services share the outbox. */
export const watchedTables: readonly WatchedTable[] = [
  ...new Set(services.flatMap(({ tables }) => tables)),
  busDeliveries,
];

const describeChange = (t: Transition): string => `${t.table_name} ${t.key} (change ${t.id}, by ${t.role})`;

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

/** Only a claim raises the epoch. */
export const isClaim = (change: Transition): boolean =>
  change.new_epoch !== null && change.old_epoch !== null && change.new_epoch !== change.old_epoch;

function checkChange(change: Transition, { states: s, more = [] }: WatchedTable): Violation[] {
  const { old_status: from, new_status: to } = change;
  if (to === null)
    return from === s.done || more.includes(`${from}>`)
      ? []
      : [violation("unfinished-is-kept", `${describeChange(change)} was deleted while ${from}`)];
  const edges = [
    [s.ready, s.claimed],
    [s.claimed, s.claimed],
    [s.claimed, s.done],
    [s.claimed, s.ready],
    [s.claimed, s.dead],
    [s.dead, s.ready],
  ];
  if (!edges.some(([a, b]) => a === from && b === to) && !more.includes(`${from}>${to}`))
    return [violation("allowed-transitions", `${describeChange(change)} went from ${from} to ${to}`)];
  return to === s.claimed ? checkClaimed(change, s) : [];
}

/** A change to the claimed state: a claim or a renewal. */
function checkClaimed(change: Transition, { ready }: WatchedTable["states"]): Violation[] {
  const { at, old_status, old_lease, old_due } = change;
  if (!isClaim(change)) {
    if (old_status !== ready) return []; // A renewal.
    return [
      violation("claim-counts", `${describeChange(change)} was claimed, but its epoch stayed ${change.new_epoch}`),
    ];
  }
  const found: Violation[] = [];
  if (change.new_epoch !== (change.old_epoch ?? 0) + 1 || change.new_attempts !== (change.old_attempts ?? 0) + 1)
    found.push(
      violation("claim-counts", `${describeChange(change)} was claimed, but attempts went to ${change.new_attempts}`),
    );
  if (old_lease !== null && old_lease > at)
    found.push(
      violation(
        "lease-is-respected",
        `${describeChange(change)} was claimed ${(old_lease - at).toFixed(0)} ms before its lease expired`,
      ),
    );
  if (old_status === ready && old_due !== null && old_due > at)
    found.push(
      violation(
        "retries-wait",
        `${describeChange(change)} was claimed ${(old_due - at).toFixed(0)} ms before it was due`,
      ),
    );
  return found;
}

/** Only the claiming process renews, settles and releases a row. */
function checkHolders(changes: readonly Transition[]): Violation[] {
  return [...groupBy(changes, ({ key }) => key).values()].flatMap((its) => {
    let holder: string | undefined;
    return its.flatMap((change) => {
      if (isClaim(change)) {
        holder = change.role;
        return [];
      }
      // Not claimed: a redrive or a deletion.
      if (change.old_lease === null || holder === undefined || change.role === holder) return [];
      return [
        violation(
          "only-the-holder-settles",
          `${describeChange(change)} set ${change.new_status} although ${holder} had the claim`,
        ),
      ];
    });
  });
}

function checkBatches(changes: readonly Transition[], { table, batchMax }: WatchedTable): Violation[] {
  return [...groupBy(changes.filter(isClaim), ({ tx }) => tx)].flatMap(([tx, batch]) =>
    batch.length > batchMax
      ? [
          violation(
            "claim-within-limit",
            `transaction ${tx} claimed ${batch.length} rows of ${table}; ${batchMax} is a batch`,
          ),
        ]
      : [],
  );
}
