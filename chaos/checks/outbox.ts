/** Compares changes, outbox events and the bus: one event per change, all published, none uncommitted, in order of versions. */
import type { Evidence, Row } from "../evidence.ts";
import { type Violation, violation } from "../invariants.ts";
import { groupBy } from "./group.ts";

export interface Outbox {
  readonly service: string;
  /** Changes with their `event_id`. */
  readonly changes: readonly Row[];
  /** Ordered by position: `event_id`, `aggregate`, `version`, `status`. */
  readonly events: readonly Row[];
}

export function checkOutbox(evidence: Evidence, outbox: Outbox): Violation[] {
  return [...checkOnePerChange(outbox), ...checkPublished(evidence, outbox.events)];
}

/** For a service with its own check of events per change. */
export const checkPublished = (evidence: Evidence, events: readonly Row[]): Violation[] => [
  ...checkAllPublished(evidence, events),
  ...checkOrder(evidence, events),
];

function checkOnePerChange({ changes, events }: Outbox): Violation[] {
  const eventsById = groupBy(events, ({ event_id }) => String(event_id));
  const changesById = groupBy(changes, ({ event_id }) => String(event_id));
  return [...new Set([...eventsById.keys(), ...changesById.keys()])].flatMap((id) => {
    const [e, c] = [eventsById.get(id)?.length ?? 0, changesById.get(id)?.length ?? 0];
    return e === 1 && c === 1 ? [] : [violation("event-per-change", `event ${id}: ${e} in the outbox, ${c} changes`)];
  });
}

function checkAllPublished({ audited, tables }: Evidence, events: readonly Row[]): Violation[] {
  const busIds = new Set(audited.map(({ eventId }) => eventId));
  // All services share the bus.
  const outboxes = Object.entries(tables).flatMap(([name, rows]) => (name.endsWith("/events") ? rows : []));
  const committed = new Set(outboxes.map(({ event_id }) => String(event_id)));
  const unpublished = events.flatMap(({ event_id, aggregate, version, status, last_error }) => {
    if (status !== "PUBLISHED")
      return [
        violation("event-reaches-the-bus", `event ${event_id} of ${aggregate} v${version} is ${status}: ${last_error}`),
      ];
    if (busIds.has(String(event_id))) return [];
    return [
      violation("event-reaches-the-bus", `event ${event_id} of ${aggregate} v${version} is PUBLISHED, not on the bus`),
    ];
  });
  const unknownIds = [...busIds].filter((id) => !committed.has(id));
  return [
    ...unpublished,
    ...unknownIds.map((id) => violation("published-was-committed", `event ${id} is in no outbox`)),
  ];
}

/** Order on the bus, by first occurrence, and in the outbox, by position. */
function checkOrder({ audited }: Evidence, events: readonly Row[]): Violation[] {
  const busIndex = new Map<string, number>();
  audited.forEach(({ eventId }, at) => void (busIndex.has(eventId) || busIndex.set(eventId, at)));
  const orders: readonly { readonly by: string; of(event: Row): number | undefined }[] = [
    { by: "on the bus", of: ({ event_id }) => busIndex.get(String(event_id)) },
    { by: "in the outbox", of: ({ position }) => Number(position) },
  ];
  return [...groupBy(events, ({ aggregate }) => String(aggregate))].flatMap(([aggregate, its]) => {
    const byVersion = its.toSorted((a, b) => Number(a.version) - Number(b.version));
    return orders.flatMap(({ by, of }) => {
      const placed = byVersion.filter((event) => of(event) !== undefined);
      const wrong = placed.findIndex((event, n) => n > 0 && Number(of(event)) < Number(of(placed[n - 1] as Row)));
      if (wrong < 0) return [];
      const [before, after] = [placed[wrong - 1]?.version, placed[wrong]?.version];
      return [violation("published-in-order", `${aggregate}: version ${after} comes before version ${before} ${by}`)];
    });
  });
}
