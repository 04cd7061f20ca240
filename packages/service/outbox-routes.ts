/**
 * FAILED outbox events for the operator: list them, look at one, let one be tried again. The same for every service that
 * emits; registered through `debug`, so that it answers on the ops listener only.
 *
 * A redrive and the record of who asked for it are one commit. Of two people who redrive one event at once, one does, and
 * the other is told that it is not FAILED any more.
 */
import { cursorOf, type HttpApp, NextCursor, PageQuery, page } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { deadOutboxEvents, type FailedEvent, failedEvents } from "@todoke/kernel/outbox";
import { problem } from "@todoke/kernel/problem";
import { Type } from "typebox";
import { RedriveBody, RedriveView, redriveRequest } from "./redrive.ts";

export interface OutboxRoutesOptions {
  readonly db: Db;
  /** The relay's wake-up. */
  readonly onRedriven: () => void;
}

const failedEventNotFound = problem({
  code: "failed-event-not-found",
  status: 404,
  title: "No FAILED event has this id",
});

// Not the format "uuid", which also takes "urn:uuid:…".
const EventId = Type.String({ pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" });
const EventParams = Type.Object({ event_id: EventId });

const EventSummary = Type.Object({
  event_id: EventId,
  event_type: Type.String(),
  aggregate_key: Type.String(),
  version: Type.Integer(),
  attempt_count: Type.Integer(),
  last_error: Type.Union([Type.String(), Type.Null()]),
  created_at: Type.String({ format: "date-time" }),
  parked: Type.Integer({ description: "Later events of the same aggregate that wait behind it." }),
});

const EventDetail = Type.Object({
  ...EventSummary.properties,
  status: Type.Union([
    Type.Literal("PENDING"),
    Type.Literal("IN_FLIGHT"),
    Type.Literal("PUBLISHED"),
    Type.Literal("FAILED"),
  ]),
  subject: Type.String(),
  payload: Type.Unknown({ description: "The event as JSON, before it is encoded." }),
  redrives: Type.Array(RedriveView, { description: "Who let it be tried again, newest first; the last 20." }),
});

export function outboxRoutes(app: HttpApp, options: OutboxRoutesOptions): void {
  listRoute(app, options.db);
  showRoute(app, options.db);
  redriveRoute(app, options);
}

function listRoute(app: HttpApp, db: Db): void {
  app.get(
    "/debug/outbox/failed",
    {
      schema: {
        operationId: "listFailedEvents",
        summary: "Events that were given up, oldest first",
        querystring: Type.Object(PageQuery),
        response: { 200: Type.Object({ events: Type.Array(EventSummary), next_cursor: NextCursor }) },
      },
    },
    async ({ query }) => {
      const after = BigInt(cursorOf(query, { parts: ["bigint"] })?.[0] ?? 0);
      const { rows, ...next } = await page(query, {
        read: (limit) => failedEvents(db, { after, limit }),
        name: ({ position }) => position.toString(),
      });
      return { events: rows.map(summaryOf), ...next };
    },
  );
}

function summaryOf(event: FailedEvent) {
  return {
    event_id: event.eventId,
    event_type: event.eventType,
    aggregate_key: event.aggregateKey,
    version: Number(event.version),
    attempt_count: event.attempts,
    last_error: event.lastError,
    created_at: event.createdAt.toISOString(),
    parked: event.parked,
  };
}

function showRoute(app: HttpApp, db: Db): void {
  app.get(
    "/debug/outbox/failed/:event_id",
    {
      schema: {
        operationId: "showFailedEvent",
        summary: "One event that was given up, with its payload and its redrives, whatever became of it since",
        params: EventParams,
        response: { 200: EventDetail },
      },
    },
    async ({ params: { event_id } }) => {
      const event = await deadOutboxEvents.show(db, event_id);
      if (event?.status !== "FAILED" && !event?.redrives.length)
        throw failedEventNotFound("no event with this id is FAILED, and none was redriven");
      const { about: aggregate_key, since: created_at, version } = event;
      return { ...event, event_id: event.id, aggregate_key, version: Number(version), created_at };
    },
  );
}

function redriveRoute(app: HttpApp, { db, onRedriven }: OutboxRoutesOptions): void {
  app.post(
    "/debug/outbox/failed/:event_id/redrive",
    {
      schema: {
        operationId: "redriveFailedEvent",
        summary: "Lets an event be tried again with all its attempts; those behind it follow",
        params: EventParams,
        body: RedriveBody,
        response: { 200: Type.Object({ event_id: EventId, status: Type.Literal("PENDING") }) },
      },
    },
    async ({ params, body }) => {
      // Whoever comes second finds nothing FAILED: the row's lock decides.
      const [event_id] = await deadOutboxEvents.redrive(db, [params.event_id], redriveRequest(body));
      if (event_id === undefined)
        throw failedEventNotFound("no event with this id is FAILED; perhaps somebody has redriven it already");
      onRedriven();
      return { event_id, status: "PENDING" as const };
    },
  );
}
