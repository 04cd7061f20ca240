/**
 * Changes against events against the bus: one event per change, all of them published, nothing on the bus that was not
 * committed, and every aggregate in the order of its versions.
 */
import type { Evidence, Row } from "../evidence.ts";
import type { InvariantName, Violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

export interface Outbox {
  readonly service: string;
  /** What was changed: each with its `event_id`. */
  readonly changes: readonly Row[];
  /** In the order of their positions: `event_id`, `aggregate`, `version`, `status`. */
  readonly events: readonly Row[];
}

const breach = (invariant: InvariantName, what: string): Violation => ({ invariant, what });

export function checkOutbox(evidence: Evidence, outbox: Outbox): Violation[] {
  return [...onePerChange(outbox), ...checkPublished(evidence, outbox.events)];
}

/** For a service whose changes and events are not one to one, which says itself what must be told. */
export const checkPublished = (evidence: Evidence, events: readonly Row[]): Violation[] => [
  ...allPublished(evidence, events),
  ...inOrder(evidence, events),
];

function onePerChange({ changes, events }: Outbox): Violation[] {
  const eventsById = groupBy(events, ({ event_id }) => String(event_id));
  const changesById = groupBy(changes, ({ event_id }) => String(event_id));
  return [...new Set([...eventsById.keys(), ...changesById.keys()])].flatMap((id) => {
    const [e, c] = [eventsById.get(id)?.length ?? 0, changesById.get(id)?.length ?? 0];
    return e === 1 && c === 1 ? [] : [breach("event-per-change", `event ${id}: ${e} in the outbox, ${c} changes`)];
  });
}

function allPublished({ audited, tables }: Evidence, events: readonly Row[]): Violation[] {
  const onTheBus = new Set(audited.map(({ eventId }) => eventId));
  // The bus is that of all services.
  const outboxes = Object.entries(tables).flatMap(([name, rows]) => (name.endsWith("/events") ? rows : []));
  const committed = new Set(outboxes.map(({ event_id }) => String(event_id)));
  const unpublished = events.flatMap(({ event_id, aggregate, version, status, last_error }) => {
    if (status !== "PUBLISHED")
      return [
        breach("event-reaches-the-bus", `event ${event_id} of ${aggregate} v${version} is ${status}: ${last_error}`),
      ];
    if (onTheBus.has(String(event_id))) return [];
    return [
      breach("event-reaches-the-bus", `event ${event_id} of ${aggregate} v${version} is PUBLISHED, not on the bus`),
    ];
  });
  const strangers = [...onTheBus].filter((id) => !committed.has(id));
  return [...unpublished, ...strangers.map((id) => breach("published-was-committed", `event ${id} is in no outbox`))];
}

/** On the bus, where each event first came; and in the outbox, by the positions that the relay goes by. */
function inOrder({ audited }: Evidence, events: readonly Row[]): Violation[] {
  const place = new Map<string, number>();
  audited.forEach(({ eventId }, at) => void (place.has(eventId) || place.set(eventId, at)));
  const orders: readonly { readonly by: string; of(event: Row): number | undefined }[] = [
    { by: "on the bus", of: ({ event_id }) => place.get(String(event_id)) },
    { by: "in the outbox", of: ({ position }) => Number(position) },
  ];
  return [...groupBy(events, ({ aggregate }) => String(aggregate))].flatMap(([aggregate, its]) => {
    const byVersion = its.toSorted((a, b) => Number(a.version) - Number(b.version));
    return orders.flatMap(({ by, of }) => {
      const placed = byVersion.filter((event) => of(event) !== undefined);
      const wrong = placed.findIndex((event, n) => n > 0 && Number(of(event)) < Number(of(placed[n - 1] as Row)));
      if (wrong < 0) return [];
      const [before, after] = [placed[wrong - 1]?.version, placed[wrong]?.version];
      return [breach("published-in-order", `${aggregate}: version ${after} comes before version ${before} ${by}`)];
    });
  });
}
