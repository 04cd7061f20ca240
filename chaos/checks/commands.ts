/**
 * Compares commands with their effects: accepted ones have one effect, rejected ones none, unknown ones all or nothing, and every
 * key has one response.
 */
import type { Evidence, Row } from "../evidence.ts";
import { type Attempt, type Command, type CommandHistory, groupCommands } from "../history.ts";
import { type InvariantName, type Violation, violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

export interface CommandTraces {
  readonly service: string;
  /** Which of its commands these are. Default: all. */
  isCommand?(command: Command): boolean;
  /** Changes with the ID of their `command`. */
  readonly effects: readonly Row[];
  /** Events with the ID of their `command`. Missing if a command may have none: the service then checks them itself. */
  readonly events?: readonly Row[];
  /** Stored responses: `scope`, `idem_key`, `answer`. */
  readonly keys: readonly Row[];
  /** The scope of its keys. Default: caller and path. */
  scopeOf?(command: Command): string;
  /** Whether a valid command may be rejected so, for instance without enough points. */
  mayReject?(attempt: Attempt): boolean;
  /** Whether a response describes this effect. */
  matches(effect: Row, answer: Row): boolean;
}

export function checkCommands(evidence: Evidence, traces: CommandTraces): Violation[] {
  const histories = groupCommands(evidence.history).filter(
    ({ command }) => command.service === traces.service && (traces.isCommand?.(command) ?? true),
  );
  const of = (rows: readonly Row[]) => groupBy(rows, ({ command }) => String(command));
  const [effects, events] = [of(traces.effects), of(traces.events ?? [])];
  const stored = new Map(traces.keys.map((key) => [`${key.scope}\n${key.idem_key}`, key]));
  const known = new Set(histories.map(({ command }) => command.id));
  const unknownIds = [...new Set([...effects.keys(), ...events.keys()])].filter((id) => !known.has(id));
  return [
    ...histories.flatMap((one) => {
      const own = { effects: effects.get(one.command.id) ?? [], events: events.get(one.command.id) ?? [] };
      return checkOne(one, {
        ...own,
        key: stored.get(`${(traces.scopeOf ?? defaultScope)(one.command)}\n${one.command.key}`),
        traces,
      });
    }),
    ...unknownIds.map((id) => violation("effect-has-a-command", `${id} took effect without a command`)),
    ...checkReads(evidence),
  ];
}

const defaultScope = ({ caller, path }: Command): string => `${caller} POST ${path}`;

interface CommandEffects {
  readonly effects: readonly Row[];
  readonly events: readonly Row[];
  readonly key: Row | undefined;
  readonly traces: CommandTraces;
}

function checkOne(history: CommandHistory, own: CommandEffects): Violation[] {
  const { command, attempts, end } = history;
  const found: Violation[] = [];
  const report = (invariant: InvariantName, what: string) =>
    void found.push(violation(invariant, `${command.kind} ${command.id} (${command.caller}, ${command.key}) ${what}`));

  const counts = `${own.effects.length} effects, ${own.events.length} events`;
  if (own.effects.length > 1 || own.events.length > 1) report("done-once", `has ${counts}`);
  if (command.wants === "refusal") return [...found, ...checkRejected(history, own)];
  const mayReject = own.traces.mayReject ?? (() => false);
  const refusal = attempts.find(
    (attempt) => attempt.end === "refused" && !hadExpired(command.body, attempt) && !mayReject(attempt),
  );
  if (refusal) report("valid-is-accepted", `was rejected: ${refusal.status} ${refusal.answer ?? ""}`);
  if (end === "ok") checkAccepted(history, own, report);
  if (end === "refused" && own.effects.length + own.events.length > 0)
    report("rejected-is-not-done", `was rejected, but has ${counts}`);
  if (end === "unknown" && own.traces.events && own.effects.length !== own.events.length)
    report("unknown-is-all-or-nothing", `has ${counts}`);
  // Its key may also belong to the command that it conflicts with.
  if (end === "unknown" && own.effects.length === 1 && own.key === undefined)
    report("unknown-is-all-or-nothing", "took effect, but no response is stored");
  return found;
}

/** A grant whose end has passed when it runs is rejected, correctly. */
function hadExpired(body: CommandHistory["command"]["body"], { to }: Attempt): boolean {
  return typeof body.expires_at === "string" && Date.parse(body.expires_at) < to;
}

function checkRejected({ command, attempts }: CommandHistory, own: CommandEffects): Violation[] {
  const name = `${command.kind} ${command.id} (${command.caller}, ${command.key})`;
  const ok = attempts.filter(({ end }) => end === "ok");
  const isConflict = command.body.reason !== "";
  return [
    ...ok.map(({ status }) =>
      violation(isConflict ? "conflict-is-rejected" : "rejected-is-not-done", `${name} was answered ${status}`),
    ),
    ...(own.effects.length + own.events.length > 0
      ? [violation("rejected-is-not-done", `${name} must have no effect, but has ${own.effects.length} effects`)]
      : []),
  ];
}

function checkAccepted(
  { attempts }: CommandHistory,
  own: CommandEffects,
  report: (invariant: InvariantName, what: string) => void,
): void {
  const oks = attempts.filter(({ end }) => end === "ok");
  const [first] = oks;
  const answer = first?.answer ?? "";
  const [effect] = own.effects;
  if (!effect) report("accepted-is-done", `was answered ${first?.status}, but has no effect`);
  else if (!own.traces.matches(effect, JSON.parse(answer)))
    report("accepted-is-done", `was answered ${answer}, but its effect is ${JSON.stringify(effect)}`);
  if (own.traces.events && own.events.length === 0)
    report("accepted-is-done", `was answered ${first?.status}, but has no event`);
  const other = oks.find((each) => each.answer !== answer || each.status !== first?.status);
  if (other) report("same-response", `was answered ${answer} and ${other.status} ${other.answer}`);
  if (!own.key) report("same-response", "was answered, but no response is stored");
  else if (own.key.answer !== answer)
    report("same-response", `was answered ${answer}, but ${own.key.answer} is stored`);
}

function checkReads({ history }: Evidence): Violation[] {
  return history.flatMap((line) =>
    "read" in line && line.seen < line.answered
      ? [
          violation(
            "no-stale-read",
            `${line.read} was at version ${line.answered}, but ${line.via} then read ${line.seen}`,
          ),
        ]
      : [],
  );
}
