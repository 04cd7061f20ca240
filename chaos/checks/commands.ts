/**
 * Commands against what they left: what was answered is there, nothing is there twice or without a cause, what was
 * refused left nothing, what nobody heard of happened whole or not at all, and one key has one answer.
 */
import type { Evidence, Row } from "../evidence.ts";
import { type Attempt, commandsOf, type Told } from "../history.ts";
import type { InvariantName, Violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

export interface Left {
  readonly service: string;
  /** The changes, each with the id of its `command`. */
  readonly effects: readonly Row[];
  /** Its events, each with the id of its `command`. */
  readonly events: readonly Row[];
  /** The stored answers: `scope`, `idem_key`, `answer`. */
  readonly keys: readonly Row[];
  /** Whether an answer tells of this effect. */
  matches(effect: Row, answer: Row): boolean;
}

export function checkCommands(evidence: Evidence, left: Left): Violation[] {
  const told = commandsOf(evidence.history).filter(({ command }) => command.service === left.service);
  const of = (rows: readonly Row[]) => groupBy(rows, ({ command }) => String(command));
  const [effects, events] = [of(left.effects), of(left.events)];
  const stored = new Map(left.keys.map((key) => [`${key.scope}\n${key.idem_key}`, key]));
  const known = new Set(told.map(({ command }) => command.id));
  const strangers = [...new Set([...effects.keys(), ...events.keys()])].filter((id) => !known.has(id));
  return [
    ...told.flatMap((one) => {
      const its = { effects: effects.get(one.command.id) ?? [], events: events.get(one.command.id) ?? [] };
      return checkOne(one, { ...its, key: stored.get(scopeOf(one)), left });
    }),
    ...strangers.map((id) => breach("nothing-without-a-cause", `${id} took effect, and nobody sent it`)),
    ...checkReads(evidence),
  ];
}

const breach = (invariant: InvariantName, what: string): Violation => ({ invariant, what });

const scopeOf = ({ command: { caller, path, key } }: Told): string => `${caller} POST ${path}\n${key}`;

interface Its {
  readonly effects: readonly Row[];
  readonly events: readonly Row[];
  readonly key: Row | undefined;
  readonly left: Left;
}

function checkOne(told: Told, its: Its): Violation[] {
  const { command, attempts, end } = told;
  const found: Violation[] = [];
  const say = (invariant: InvariantName, what: string) =>
    void found.push(breach(invariant, `${command.kind} ${command.id} (${command.caller}, ${command.key}) ${what}`));

  const counts = `${its.effects.length} effects, ${its.events.length} events`;
  if (its.effects.length > 1 || its.events.length > 1) say("done-once", `has ${counts}`);
  if (command.wants === "refusal") return [...found, ...checkRefused(told, its)];
  const refusal = attempts.find((attempt) => attempt.end === "refused" && !ranOut(command.body, attempt));
  if (refusal) say("valid-is-accepted", `was refused: ${refusal.status} ${refusal.answer ?? ""}`);
  if (end === "ok") checkAnswered(told, its, say);
  if (end === "refused" && its.effects.length + its.events.length > 0) say("refused-is-not-done", `and has ${counts}`);
  if (end === "unknown" && its.effects.length !== its.events.length) say("unknown-is-all-or-nothing", `has ${counts}`);
  // Its key may also be that of the command which it was meant to collide with.
  if (end === "unknown" && its.effects.length === 1 && its.key === undefined)
    say("unknown-is-all-or-nothing", "took effect, and no answer was stored");
  return found;
}

/** A grant for a time that has passed by the time it is carried out is refused, as it should be. */
function ranOut(body: Told["command"]["body"], { to }: Attempt): boolean {
  return typeof body.expires_at === "string" && Date.parse(body.expires_at) < to;
}

function checkRefused({ command, attempts }: Told, its: Its): Violation[] {
  const name = `${command.kind} ${command.id} (${command.caller}, ${command.key})`;
  const ok = attempts.filter(({ end }) => end === "ok");
  const isConflict = command.body.reason !== "";
  return [
    ...ok.map(({ status }) =>
      breach(isConflict ? "other-body-is-refused" : "refused-is-not-done", `${name} was answered ${status}`),
    ),
    ...(its.effects.length + its.events.length > 0
      ? [breach("refused-is-not-done", `${name} should do nothing, and has ${its.effects.length} effects`)]
      : []),
  ];
}

function checkAnswered({ attempts }: Told, its: Its, say: (invariant: InvariantName, what: string) => void): void {
  const oks = attempts.filter(({ end }) => end === "ok");
  const [first] = oks;
  const answer = first?.answer ?? "";
  const [effect] = its.effects;
  if (!effect) say("answered-is-done", `was answered ${first?.status}, and nothing is there`);
  else if (!its.left.matches(effect, JSON.parse(answer)))
    say("answered-is-done", `was answered ${answer}, and what is there is ${JSON.stringify(effect)}`);
  if (its.events.length === 0) say("answered-is-done", `was answered ${first?.status}, and no event is there`);
  const other = oks.find((each) => each.answer !== answer || each.status !== first?.status);
  if (other) say("same-answer", `was answered ${answer} and ${other.status} ${other.answer}`);
  if (!its.key) say("same-answer", "was answered, and the answer was not stored");
  else if (its.key.answer !== answer) say("same-answer", `was answered ${answer}, and ${its.key.answer} is stored`);
}

function checkReads({ history }: Evidence): Violation[] {
  return history.flatMap((line) =>
    "read" in line && line.seen < line.answered
      ? [
          breach(
            "no-stale-read",
            `${line.read} was at version ${line.answered}, and ${line.via} then read ${line.seen}`,
          ),
        ]
      : [],
  );
}
