/**
 * Checks how soon work resumes after the last fault, a kill and an orderly stop, and that no process exits and no lease is lost
 * without a reason. A time limit applies only if no other fault was active.
 */
import type { Evidence, Exit, FaultRecord } from "../evidence.ts";
import type { Violation } from "../invariants.ts";
import { holderPid, type Transition } from "../watch.ts";
import { isClaim } from "./claims.ts";
import { groupBy } from "./group.ts";

export interface Resumed {
  /** The process that had the claim. */
  readonly process: string;
  readonly tookMs: number;
  /** No other fault was active. */
  readonly alone: boolean;
  readonly row: string;
}

export interface Recovery {
  readonly killed: readonly Resumed[];
  readonly stopped: readonly Resumed[];
}

const stopMs = 2_000;

export function checkRecovery(evidence: Evidence): Violation[] {
  const { facts } = evidence;
  const { killed, stopped } = measureRecovery(evidence);
  const within = killedWithinMs(evidence);
  const late = (all: readonly Resumed[], invariant: Violation["invariant"], ms: number): Violation[] =>
    all
      .filter(({ alone, tookMs }) => alone && tookMs > ms)
      .map(({ process, tookMs, row }) => ({
        invariant,
        what: `${row}, claimed by ${process}, resumed after ${tookMs.toFixed(0)} ms`,
      }));
  const times = [
    ...late(killed, "killed-work-resumes", within),
    ...late(stopped, "stopped-work-resumes", stopMs),
    ...checkLeasesKept(evidence),
  ];
  return [
    ...(facts.quietAt === undefined ? [{ invariant: "becomes-quiet" as const, what: "it did not become quiet" }] : []),
    ...facts.faults.flatMap(({ n, fault, target, failed }) =>
      failed === undefined
        ? []
        : [{ invariant: "becomes-quiet" as const, what: `fault ${n}, ${fault} of ${target}: ${failed}` }],
    ),
    ...facts.exits.flatMap(checkExit),
    ...(facts.timed ? times : []),
  ];
}

export const killedWithinMs = ({ facts }: Evidence): number => 1.2 * facts.leaseMs;

/** Rows that a process had claimed when it was killed or stopped, and when they changed next. */
export function measureRecovery({ facts, transitions }: Evidence): Recovery {
  const byKey = [...groupBy(transitions, ({ table_name, key }) => `${table_name} ${key}`)];

  function resumedAfter(moment: Moment): Resumed[] {
    return byKey.flatMap(([row, changes]) => {
      const next = changes.findIndex(({ at }) => at > moment.at);
      const [before, after] = [changes[next - 1], changes[next]];
      if (!before || !after || before.new_lease === null || holderPid(before.new_holder) !== moment.pid) return [];
      return [
        { row, process: moment.target, tookMs: after.at - moment.at, alone: isAlone(moment, after.at, facts.faults) },
      ];
    });
  }

  const kills = facts.exits.filter(({ signal }) => signal === "SIGKILL");
  const stops = facts.faults.filter(({ fault, happened }) => happened && stopping.includes(fault));
  return {
    killed: kills.flatMap(resumedAfter),
    stopped: stops.flatMap(({ from, target, pid = 0 }) => resumedAfter({ at: from, target, pid })),
  };
}

/** Faults that begin with a SIGTERM. */
const stopping = ["terminate", "clock skew", "failpoint"];

interface Moment {
  readonly at: number;
  readonly target: string;
  readonly pid: number;
}

/** Whether no other fault was active until the row changed. */
function isAlone(moment: Moment, until: number, faults: readonly FaultRecord[]): boolean {
  return !faults.some(
    (other) =>
      other.happened &&
      other.to + backoffAfterMs(other) > moment.at &&
      other.from < until &&
      !isElsewhere(other, moment) &&
      !(other.target === moment.target && other.from <= moment.at && other.to >= moment.at),
  );
}

const serviceOf = (process: string): string => process.replace(/_\d+$/, "");

/** Faults of another service's processes do not affect these rows. */
const isElsewhere = ({ target }: FaultRecord, moment: Moment): boolean =>
  /_\d+$/.test(target) && serviceOf(target) !== serviceOf(moment.target);

/** How long backoff can delay work after a fault ends. */
function backoffAfterMs({ fault }: FaultRecord): number {
  if (/^(webhook|order broker|broker|bus|publish|ack)\b/.test(fault)) return 11_000;
  return /^(postgres|database|service database|names|no file|commit|sessions|rows)\b/.test(fault) ? 5_000 : 0;
}

function checkExit({ target, pid, code, signal, wanted, logTail = "" }: Exit): Violation[] {
  const fine = wanted === "kill" || (wanted === "stop" && code === 0) || wanted === "start";
  const how = signal ?? `code ${code}`;
  const what = `${target} (process ${pid}) exited by ${how}; intended: ${wanted}; log: ${logTail}`;
  return fine ? [] : [{ invariant: "clean-exit", what }];
}

/** An expired lease needs a fault of its process or of a dependency. */
function checkLeasesKept({ facts, transitions }: Evidence): Violation[] {
  const faults = facts.faults.filter(({ happened }) => happened);
  const hadFault = (change: Transition): boolean => {
    // From the last renewal that could have failed until the claim.
    const since = change.at - 3 * facts.leaseMs;
    const pid = holderPid(change.old_holder);
    return (
      faults.some(({ from, to }) => from < change.at && to > since) ||
      facts.exits.some((exit) => exit.pid === pid && exit.at <= change.at)
    );
  };
  return transitions
    .filter((change) => isClaim(change) && change.old_lease !== null && !hadFault(change))
    .map(({ table_name, key, old_holder }) => ({
      invariant: "lease-is-kept",
      what: `${table_name} ${key} was lost by ${old_holder} without a fault`,
    }));
}
