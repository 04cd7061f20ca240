/**
 * How soon work goes on: after the nemesis has stopped, after a kill, after an orderly stop; and that nothing ends, or
 * loses a lease, without a reason.
 *
 * A time is only held against the system when nothing else was done to it meanwhile: two faults at once have no promise
 * about time, only about effects.
 */
import type { Evidence, Exit, FaultRecord } from "../evidence.ts";
import type { Violation } from "../invariants.ts";
import { holderPid, type Transition } from "../watch.ts";
import { isClaim } from "./claims.ts";
import { groupBy } from "./group.ts";

export interface Resumed {
  /** Who held it. */
  readonly process: string;
  readonly tookMs: number;
  /** Nothing else happened meanwhile. */
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
  const { killed, stopped } = recoveryOf(evidence);
  const within = killedWithinMs(evidence);
  const late = (all: readonly Resumed[], invariant: Violation["invariant"], ms: number): Violation[] =>
    all
      .filter(({ alone, tookMs }) => alone && tookMs > ms)
      .map(({ process, tookMs, row }) => ({
        invariant,
        what: `${row}, held by ${process}, went on after ${tookMs.toFixed(0)} ms`,
      }));
  const times = [
    ...late(killed, "killed-work-resumes", within),
    ...late(stopped, "stopped-work-resumes", stopMs),
    ...checkKept(evidence),
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

/** Each row that a process held when it was killed, by us or at a failpoint, or told to stop; and when it went on. */
export function recoveryOf({ facts, transitions }: Evidence): Recovery {
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

/** Whether nothing but the fault that ended the process was in the way until its work was taken up. */
function isAlone(moment: Moment, until: number, faults: readonly FaultRecord[]): boolean {
  return !faults.some(
    (other) =>
      other.happened &&
      other.to + lingersMs(other) > moment.at &&
      other.from < until &&
      !isElsewhere(other, moment) &&
      !(other.target === moment.target && other.from <= moment.at && other.to >= moment.at),
  );
}

const serviceOf = (process: string): string => process.replace(/_\d+$/, "");

/** What is done to processes of another service is not in the way: these rows are none of theirs. */
const isElsewhere = ({ target }: FaultRecord, moment: Moment): boolean =>
  /_\d+$/.test(target) && serviceOf(target) !== serviceOf(moment.target);

/** Whoever could not reach something leaves it alone for a while, longer and longer: up to so long after it is back. */
function lingersMs({ fault }: FaultRecord): number {
  if (/^(webhook|order broker|broker|bus|publish|ack)\b/.test(fault)) return 11_000;
  return /^(postgres|database|commit|sessions|rows)\b/.test(fault) ? 5_000 : 0;
}

function checkExit({ target, pid, code, signal, wanted, lastWords = "" }: Exit): Violation[] {
  const fine = wanted === "kill" || (wanted === "stop" && code === 0) || wanted === "start";
  const how = signal ?? `code ${code}`;
  const what = `${target} (process ${pid}) ended by ${how}; wanted: ${wanted}; its last words: ${lastWords}`;
  return fine ? [] : [{ invariant: "clean-exit", what }];
}

/** A lease that lapsed has a fault behind it, to its holder's process or to what that process depends on. */
function checkKept({ facts, transitions }: Evidence): Violation[] {
  const faults = facts.faults.filter(({ happened }) => happened);
  const wasTouched = (change: Transition): boolean => {
    // From the last renewal that could have failed to the moment at which it was taken.
    const since = change.at - 3 * facts.leaseMs;
    const pid = holderPid(change.old_holder);
    return (
      faults.some(({ from, to }) => from < change.at && to > since) ||
      facts.exits.some((exit) => exit.pid === pid && exit.at <= change.at)
    );
  };
  return transitions
    .filter((change) => isClaim(change) && change.old_lease !== null && !wasTouched(change))
    .map(({ table_name, key, old_holder }) => ({
      invariant: "lease-is-kept",
      what: `${table_name} ${key} was lost by ${old_holder}, to which nothing had been done`,
    }));
}
