/**
 * Versions against the clients' time: whoever sends a command after another one on the same aggregate was answered gets
 * a later version. With versions that have no gaps, this makes the changes of an aggregate one history that all clients
 * agree on.
 */
import type { Evidence, Row } from "../evidence.ts";
import { commandsOf } from "../history.ts";
import type { Violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

interface Change {
  readonly id: string;
  readonly aggregate: string;
  readonly version: number;
  /** When it was first sent, and when it was first answered. */
  readonly sentAt: number;
  readonly answeredAt: number;
}

export interface Answers {
  readonly service: string;
  /** Which aggregate an answer tells of; its `version` is the answer's. */
  aggregateOf(answer: Row): string;
}

export function checkRealTime(evidence: Evidence, answers: Answers): Violation[] {
  return [...groupBy(changesOf(evidence, answers), ({ aggregate }) => aggregate).values()].flatMap(checkOne);
}

function changesOf({ history }: Evidence, { service, aggregateOf }: Answers): Change[] {
  return commandsOf(history).flatMap(({ command, attempts, end }) => {
    if (command.service !== service || end !== "ok" || command.wants === "refusal") return [];
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

/** Goes through the time once: what was answered before a command was sent must have a lower version than it. */
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
      return [{ invariant: "later-is-later" as const, what }];
    });
}
