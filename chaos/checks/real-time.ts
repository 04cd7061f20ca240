/**
 * Compares versions with the clients' clock: a command sent after the response to another one has a later version. With versions
 * without gaps, all clients agree on one history of an aggregate.
 */
import type { Evidence, Row } from "../evidence.ts";
import { type Command, groupCommands } from "../history.ts";
import type { Violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

interface Change {
  readonly id: string;
  readonly aggregate: string;
  readonly version: number;
  /** First send and first response. */
  readonly sentAt: number;
  readonly answeredAt: number;
}

export interface Answers {
  readonly service: string;
  /** Which of its commands have versions. Default: all. */
  isCommand?(command: Command): boolean;
  /** The aggregate of a response. */
  aggregateOf(answer: Row): string;
}

export function checkRealTime(evidence: Evidence, answers: Answers): Violation[] {
  return [...groupBy(listChanges(evidence, answers), ({ aggregate }) => aggregate).values()].flatMap(checkOne);
}

function listChanges({ history }: Evidence, { service, isCommand = () => true, aggregateOf }: Answers): Change[] {
  return groupCommands(history).flatMap(({ command, attempts, end }) => {
    if (command.service !== service || !isCommand(command) || end !== "ok" || command.wants === "refusal") return [];
    const oks = attempts.filter((attempt) => attempt.end === "ok");
    const answer: Row = JSON.parse(oks[0]?.answer ?? "{}");
    return {
      id: command.id,
      aggregate: aggregateOf(answer),
      version: Number(answer.version),
      sentAt: Math.min(...attempts.map(({ from }) => from)),
      answeredAt: Math.min(...oks.map(({ to }) => to)),
    };
  });
}

/** A command must have a higher version than every command that was answered before it was sent. */
function checkOne(changes: readonly Change[]): Violation[] {
  const answered = changes.toSorted((a, b) => a.answeredAt - b.answeredAt);
  let before = 0;
  let latest: Change | undefined;
  return changes
    .toSorted((a, b) => a.sentAt - b.sentAt)
    .flatMap((change) => {
      for (let next = answered[before]; next && next.answeredAt < change.sentAt; next = answered[++before])
        if (!latest || next.version > latest.version) latest = next;
      if (!latest || latest.version < change.version) return [];
      const what = `${change.aggregate}: ${change.id} has version ${change.version} and was sent after ${latest.id} was answered with ${latest.version}`;
      return [{ invariant: "real-time-order" as const, what }];
    });
}
