/** Asks every service about an id, follows the ids that they name, and puts the entries into one timeline. */
import { type Entry, type FoundEntries, hasShape, type Link, type LinkKind, linkKinds } from "@todoke/kernel/why";
import type { Explanation, Part, TimelineEntry } from "./explanation.ts";
import { kindOrder } from "./kind-order.ts";
import { linksMax } from "./part-route.ts";
import { decide } from "./verdict.ts";

/** A service, however it is reached. */
export interface WhySource {
  readonly service: string;
  /** Finds what the service knows about the id, or about the links. Rejects if it does not answer. */
  find(question: { readonly id: string } | { readonly links: readonly Link[] }): Promise<FoundEntries>;
}

/** Event to notification, or order to event to notification. */
const hopsMax = 3;
const entriesMax = 200;

/** These lead to what happened next. Users, traces and sessions lead to everything else that happened. */
const followed: readonly LinkKind[] = [
  "aggregate",
  "dead-event",
  "entitlement",
  "event",
  "hold",
  "match",
  "notification",
  "order",
  "reservation",
  "ticket",
  "transaction",
];
/** A look-up by user finds all entries of the user but the processing of their events. */
const followedFromUser: readonly LinkKind[] = ["dead-event", "event"];

export async function explainId(
  id: string,
  sources: readonly WhySource[],
  absent: readonly string[] = [],
): Promise<Explanation> {
  const failures = new Map<string, string>();
  const ask = async (question: Parameters<WhySource["find"]>[0]): Promise<TimelineEntry[]> => {
    const answers = await Promise.all(
      sources.map(async ({ service, find }) => {
        try {
          const { entries, failed } = await find(question);
          if (failed[0] !== undefined) failures.set(service, failed[0]);
          return entries.map((entry) => withService(service, entry));
        } catch (error) {
          failures.set(service, error instanceof Error ? error.message : String(error));
          return [];
        }
      }),
    );
    return answers.flat();
  };

  let direct = distinct(await ask({ id }));
  const asked = new Set([...linkKinds].filter((kind) => kind !== "user").map((kind) => toName({ kind, id })));
  const [user] = hasShape("email", id) ? direct.filter(({ kind }) => kind === "user") : [];
  if (user) direct = distinct([...direct, ...(await ask({ links: [{ kind: "user", id: user.id }] }))]);
  const userId = user?.id ?? id;
  const kinds = linksOf(direct).some(({ kind, id }) => kind === "user" && id === userId) ? followedFromUser : followed;
  let all = direct;
  for (let hop = 0; hop < hopsMax; hop++) {
    const links = nextLinks(all, { asked, kinds });
    if (links.length === 0) break;
    for (const link of links) asked.add(toName(link));
    all = distinct([...all, ...(await ask({ links }))]);
  }
  const entries = all.toSorted(byTime);
  const parts = toParts(sources, failures, absent);
  return {
    id,
    ...decide({ id, direct, entries, parts }),
    found: toFound(id, direct),
    entries: entries.slice(-entriesMax),
    truncated: entries.length > entriesMax,
    links: linksOf(entries).filter(
      (link) => !asked.has(toName(link)) && link.kind !== "aggregate" && link.id !== userId,
    ),
    parts,
  };
}

function withService(service: string, { blocked_by, dead_letter, ...entry }: Entry): TimelineEntry {
  const target = (name: Entry["dead_letter"]) => name && { service, ...name };
  return {
    service,
    ...entry,
    blocked_by: blocked_by && { service, ...blocked_by, dead_letter: target(blocked_by.dead_letter) },
    dead_letter: target(dead_letter),
  };
}

const toName = ({ kind, id }: { readonly kind: string; readonly id: string }) => `${kind} ${id.toLowerCase()}`;

/** Several ids can find the same row. */
function distinct(entries: readonly TimelineEntry[]): TimelineEntry[] {
  const name = ({ service, kind, id, at, state }: TimelineEntry) => [service, kind, id, at, state].join("\n");
  return [...new Map(entries.map((entry) => [name(entry), entry])).values()];
}

const linksOf = (entries: readonly TimelineEntry[]): Link[] => [
  ...new Map(entries.flatMap(({ links }) => links).map((link) => [toName(link), link])).values(),
];

/** A look-up by any id of these finds all their entries. */
const complete: readonly string[] = ["hold", "order", "reservation", "ticket", "transaction"];

/**
 * Links of the newest entries come first, because an operator asks about what happened last. An id with a space is left out:
 * spaces separate ids in the request.
 */
function nextLinks(
  entries: readonly TimelineEntry[],
  { asked, kinds }: { readonly asked: ReadonlySet<string>; readonly kinds: readonly LinkKind[] },
): Link[] {
  const known = new Set(entries.filter(({ kind }) => complete.includes(kind)).map(toName));
  return linksOf(entries.toSorted(byTime).toReversed())
    .filter((link) => kinds.includes(link.kind) && !/\s/.test(link.id))
    .filter((link) => !asked.has(toName(link)) && !known.has(toName(link)))
    .slice(0, linksMax);
}

function byTime(a: TimelineEntry, b: TimelineEntry): number {
  if (a.at !== b.at) {
    if (a.at === null) return 1;
    if (b.at === null) return -1;
    return a.at < b.at ? -1 : 1;
  }
  return kindOrder.indexOf(a.kind) - kindOrder.indexOf(b.kind);
}

/** By kind of entry: the kind of id that its `id` is. */
const idKinds: Readonly<Record<string, LinkKind>> = {
  event: "event",
  hold: "hold",
  match: "match",
  notification: "notification",
  order: "order",
  request: "key",
  reservation: "reservation",
  session: "session",
  ticket: "ticket",
  transaction: "transaction",
  user: "user",
};

function toFound(id: string, direct: readonly TimelineEntry[]): Explanation["found"] {
  const own = direct.flatMap(({ service, kind, id: entryId }) => {
    const idKind = idKinds[kind];
    const isIt = entryId.toLowerCase() === id.toLowerCase() || kind === "order" || hasShape("email", id);
    return idKind !== undefined && isIt ? [{ kind: idKind, id: entryId, service }] : [];
  });
  return [...new Map(own.map((each) => [toName(each), each])).values()];
}

function toParts(
  sources: readonly WhySource[],
  failures: ReadonlyMap<string, string>,
  absent: readonly string[],
): readonly Part[] {
  return [
    ...sources.map(({ service }): Part => {
      const reason = failures.get(service);
      return { service, status: reason === undefined ? "ok" : "failed", reason: reason ?? null };
    }),
    ...absent.map((service): Part => ({ service, status: "absent", reason: null })),
  ].toSorted((a, b) => (a.service < b.service ? -1 : 1));
}
