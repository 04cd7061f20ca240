/**
 * Summarises the timeline of an id: one sentence, and the cure if there is one. Problems come before successes, and problems
 * that an operator must act on come first.
 */
import { consumers } from "@todoke/contracts";
import type { Cure, Part, TimelineEntry, Verdict } from "./explanation.ts";
import { kindOrder } from "./kind-order.ts";
import { describeAge, nameOf, on, short, since } from "./texts.ts";

export interface Facts {
  readonly id: string;
  /** Found by the id itself. */
  readonly direct: readonly TimelineEntry[];
  /** All, oldest first. */
  readonly entries: readonly TimelineEntry[];
  readonly parts: readonly Part[];
}

type Rule = (facts: Facts) => Verdict | undefined;

/** The first rule that applies decides. */
const rules: readonly Rule[] = [
  isBlockedByDead,
  isDead,
  isUnresolved,
  wasRemoved,
  wasRefused,
  isRetrying,
  isSuspended,
  isBlocked,
  isWaiting,
  isMissing,
  isDone,
];

export function decide(facts: Facts): Verdict {
  const verdict = rules.map((rule) => rule(facts)).find((each) => each !== undefined) as Verdict;
  const silent = facts.parts.filter(({ status }) => status === "failed").map(({ service }) => service);
  if (silent.length === 0 || verdict.outcome === "incomplete") return verdict;
  return { ...verdict, sentence: `${verdict.sentence.slice(0, -1)} (${listNames(silent)} did not answer completely).` };
}

const listNames = (names: readonly string[]) => names.join(" and ");

const verdict = (outcome: Verdict["outcome"], sentence: string, cure: Cure | null = null): Verdict => ({
  outcome,
  sentence,
  cure,
});

const advice = (text: string, command: string | null = null): Cure => ({ text, command, dead_letter: null });

function redrive(target: NonNullable<TimelineEntry["dead_letter"]>, more = ""): Cure {
  return {
    text: `Fix the cause, then redrive or discard it${more}.`,
    command: `todoke dead redrive ${target.service} ${target.id} --reason <text>`,
    dead_letter: target,
  };
}

/** Only current states count: a redrive may have resolved an earlier one. */
function isBlockedByDead({ entries }: Facts): Verdict | undefined {
  const entry = entries.findLast(({ blocked_by }) => blocked_by?.dead_letter);
  const blocker = entry?.blocked_by;
  if (!entry || !blocker?.dead_letter) return undefined;
  const reason = blocker.error === null ? "" : `: ${oneLine(blocker.error)}`;
  return verdict(
    "blocked",
    `${nameOf(entry)} waits behind the ${blocker.kind} ${blocker.id} of the same aggregate, which is ${blocker.state}${since(blocker.since)}${reason}; redrive or discard that one.`,
    redrive(blocker.dead_letter, "; the others follow automatically"),
  );
}

function isDead({ entries }: Facts): Verdict | undefined {
  const entry = entries.findLast(({ dead_letter }) => dead_letter !== null);
  if (!entry?.dead_letter) return undefined;
  // The dead letter of a notification is a row of its own, with the time.
  const died =
    entries.findLast(({ kind, id, state }) => kind === "dead" && id === entry.id && state === "FAILED") ?? entry;
  const attempts = entry.attempt === null || entry.attempt === 0 ? "" : ` after ${count(entry.attempt, "attempt")}`;
  return verdict(
    "dead",
    `${nameOf(entry)} is ${entry.state}${since(died.at)}${attempts}: ${oneLine(entry.error ?? "no error was recorded")}; redrive or discard it.`,
    redrive(entry.dead_letter),
  );
}

/** It is unknown whether the broker has the order. */
function isUnresolved({ entries }: Facts): Verdict | undefined {
  const order = entries.find(({ kind, state }) => kind === "order" && state === "unknown");
  if (!order) return undefined;
  const step = entries.findLast(({ kind, id, state }) => kind === "step" && id === order.id && state === "unknown");
  const reason = order.error === null ? "" : `: ${oneLine(order.error)}`;
  return verdict(
    order.next_retry_at === null ? "dead" : "retrying",
    `${nameOf(order)} is unresolved${since(step?.at ?? null)}${reason}; the broker is asked about it${order.next_retry_at === null ? "" : ` again at ${short(order.next_retry_at)}`}.`,
    advice(
      "Nothing is sent again before the broker answers. If it never will, look there and resolve the order by hand.",
      "todoke orders resolve <row id> --as taken|not-taken --reason <text>",
    ),
  );
}

function wasRemoved({ id, direct, entries }: Facts): Verdict | undefined {
  const discard = direct.findLast(({ kind }) => kind === "discard");
  const isThere = direct.some(({ kind }) => ["dead", "event", "notification"].includes(kind));
  if (discard && !isThere)
    return verdict(
      "removed",
      `${id} was discarded by ${discard.process} ${on(discard.at)}: ${oneLine(discard.detail ?? "")}.`,
    );
  const user = direct.find(({ kind, state }) => kind === "user" && state === "DELETED");
  if (!user) return undefined;
  const deleted = entries.findLast(({ kind, state }) => kind === "commit" && state === "DELETE");
  return verdict(
    "removed",
    `The user ${user.id} was deleted${deleted ? ` ${on(deleted.at)} by ${deleted.process}` : ""}.`,
  );
}

function wasRefused({ direct }: Facts): Verdict | undefined {
  const requests = direct.filter(({ kind }) => kind === "request");
  const request = requests.findLast(({ state }) => Number(state) >= 400);
  if (!request || requests.length > 1) return undefined;
  return verdict(
    "refused",
    `No event was written: the request was refused ${on(request.at)} with ${request.state} (${oneLine(request.detail ?? "")}).`,
    advice("Correct the request, and send it with a new key: this key keeps its answer."),
  );
}

function isRetrying({ entries }: Facts): Verdict | undefined {
  const entry = entries.findLast(
    ({ kind, error, next_retry_at, attempt }) =>
      error !== null && ((kind === "attempt" && (attempt ?? 0) > 0) || (next_retry_at !== null && kind !== "step")),
  );
  if (!entry) return undefined;
  const isProcessed = (each: TimelineEntry) =>
    each.kind === "processed" && each.service === entry.service && each.id === entry.id;
  if (entry.kind === "attempt" && entries.some(isProcessed)) return undefined;
  const again =
    entry.next_retry_at === null
      ? "it is retried automatically"
      : `the next attempt is at ${short(entry.next_retry_at)}`;
  return verdict(
    "retrying",
    `${nameOf(entry)} failed ${count(entry.attempt ?? 1, "time")} and ${again}: ${oneLine(entry.error ?? "")}.`,
    advice("It becomes a dead letter at the last attempt. Fix the cause before."),
  );
}

function isSuspended({ direct, entries }: Facts): Verdict | undefined {
  const user = direct.find(({ kind, state }) => kind === "user" && state === "SUSPENDED");
  if (!user) return undefined;
  const suspended = entries.findLast(({ kind, state }) => kind === "commit" && state === "SUSPEND");
  return verdict(
    "blocked",
    `The user ${user.id} is suspended${since(suspended?.at ?? null)}${suspended ? ` by ${suspended.process}: ${oneLine(suspended.detail ?? "")}` : ""}.`,
    advice("The suspension ends by its time, or when a person reinstates the user."),
  );
}

function isBlocked({ entries }: Facts): Verdict | undefined {
  const entry = entries.findLast(({ blocked_by }) => blocked_by !== null);
  const blocker = entry?.blocked_by;
  if (!entry || !blocker) return undefined;
  const reason = blocker.error === null ? "" : `: ${oneLine(blocker.error)}`;
  return verdict(
    blocker.error === null ? "waiting" : "retrying",
    `${nameOf(entry)} waits behind the ${blocker.kind} ${blocker.id} of the same aggregate, which is ${blocker.state}${reason}.`,
  );
}

const unfinished: Readonly<Record<string, readonly string[]>> = {
  event: ["PENDING", "IN_FLIGHT"],
  notification: ["PENDING", "PROCESSING"],
  dead: ["PENDING", "PROCESSING"],
  order: ["pending", "sending", "failed"],
  cancel: ["requested", "sending"],
  reservation: ["PENDING", "PROCESSING"],
  ticket: ["QUEUED"],
  delivery: ["PENDING", "IN_FLIGHT"],
};

function isWaiting({ entries }: Facts): Verdict | undefined {
  const entry = entries.findLast(({ kind, state }) => unfinished[kind]?.includes(state ?? ""));
  if (!entry) return undefined;
  const worker = entry.process === null ? "" : `; ${entry.process} works on it`;
  const due = entry.next_retry_at === null ? "" : `; it is due at ${short(entry.next_retry_at)}`;
  return verdict("waiting", `${nameOf(entry)} is ${entry.state}${since(entry.at)}${worker}${due}.`);
}

/** Published, but a consumer of its subject has not processed it. */
function isMissing({ entries, parts }: Facts): Verdict | undefined {
  const published = entries.findLast(({ kind }) => kind === "published");
  const subject = published?.detail?.replace(/^to /, "");
  if (!published || subject === undefined) return undefined;
  const answered = (service: string) => parts.some((part) => part.service === service && part.status === "ok");
  const missing = Object.entries(consumers)
    .filter(([consumer, subjects]) => subjects.some((each) => each === subject) && answered(consumer))
    .map(([consumer]) => consumer)
    .filter(
      (consumer) =>
        !entries.some(({ kind, service, id }) => service === consumer && kind === "processed" && id === published.id),
    );
  if (missing.length === 0) return undefined;
  return verdict(
    "waiting",
    `The event ${published.id} was published ${on(published.at)}, and ${listNames(missing)} ${missing.length === 1 ? "has" : "have"} not taken it yet.`,
    advice(
      `Check that a process of ${listNames(missing)} that consumes runs and is ready, and look at the bus. A mark that is older than its retention is gone too.`,
      `todoke doctor ${missing.join(" ")}`,
    ),
  );
}

function isDone({ id, direct, entries, parts }: Facts): Verdict {
  if (entries.length === 0) return explainAbsence(id, parts);
  const [first] = direct;
  const user = direct.find(({ kind }) => kind === "user");
  if (user) {
    const latest = entries.findLast(({ at, kind }) => at !== null && !["balance", "session", "user"].includes(kind));
    const then = latest ? ` The latest: ${describeEntry(latest)}.` : "";
    return verdict("done", `The user ${user.id} is ${user.state}; nothing of theirs failed or waits.${then}`);
  }
  const hasRow = direct.some(({ kind }) => !["processed", "attempt", "redrive"].includes(kind));
  if (!hasRow && first?.kind === "processed")
    return verdict(
      "expired",
      `The event ${id} was processed by ${listNames([...new Set(direct.map(({ service }) => service))])} ${on(first.at)}; its own row was removed by age.`,
    );
  const request = direct.find(({ kind }) => kind === "request");
  const begin = request ?? first;
  const last = entries.reduce((a, b) => (kindOrder.indexOf(b.kind) >= kindOrder.indexOf(a.kind) ? b : a));
  if (!begin || begin === last) return verdict("done", `${capital(describeEntry(last))}.`);
  return verdict("done", `${capital(describeEntry(begin))}; ${describeEntry(last)}.`);
}

/** Nothing was found: explains what that can mean for an id of this form. */
function explainAbsence(id: string, parts: readonly Part[]): Verdict {
  const silent = parts.filter(({ status }) => status === "failed").map(({ service }) => service);
  if (silent.length > 0)
    return verdict(
      "incomplete",
      `Nothing is known about ${id}, but ${listNames(silent)} did not answer.`,
      advice("Ask again."),
    );
  const age = describeAge(id);
  if (age.isOld)
    return verdict(
      "expired",
      `Nothing is known about ${id}. It is from ${age.made}: finished rows of that time are removed by age, and unfinished ones never.`,
    );
  const made =
    age.made === undefined
      ? ""
      : ` By its form it was made at ${age.made}: if it is the id of a request, that request wrote no event, because it was refused, only read, or changed nothing.`;
  return verdict(
    "unknown",
    `Nothing is known about ${id}: no row names it, so no request with it has taken effect.${made}`,
    advice(
      "A request that was refused leaves nothing, its answer says why; an idempotency key is kept for a day. A player's key is found by the player; a request whose caller chose its id, if that does not begin with a time, by the trace in its log line.",
    ),
  );
}

/** "the notification 0199… was sent at 10:02:03 (attempt 2)", without a full stop. */
function describeEntry(entry: TimelineEntry): string {
  const attempt = (entry.attempt ?? 0) > 1 ? ` (attempt ${entry.attempt})` : "";
  const name = nameOf(entry).replace(/^The /, "the ");
  switch (entry.kind) {
    case "request":
      return `${name} was answered with ${entry.state} ${on(entry.at)}`;
    case "published":
      return `the event ${entry.id} was published ${on(entry.at)}`;
    case "processed":
      return `${entry.service} took the event ${entry.id} ${on(entry.at)}`;
    case "sent":
      return `the notification ${entry.id} was sent ${on(entry.at)}`;
    case "session":
      return `${name} was opened ${on(entry.at)}`;
    case "commit":
    case "transaction":
      return `${name} (${entry.state}) was made ${on(entry.at)}`;
    default:
      return `${name} is ${entry.state ?? "there"}${since(entry.at)}${attempt}`;
  }
}

const capital = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;

const errorMax = 200;

/** Errors can contain texts of any form, from receivers. */
function oneLine(text: string): string {
  const line = text
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
    .replace(/\.$/, "");
  return line.length > errorMax ? `${line.slice(0, errorMax - 1)}…` : line;
}
