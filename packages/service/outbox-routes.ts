/**
 * The FAILED events of the outbox, for operators: list, get, redrive. The same for every service that emits.
 *
 * A redrive and the record of who requested it are one commit. If two operators redrive the same event, one succeeds and the
 * other learns that it is no longer FAILED.
 */
import { named, oneOf } from "@todoke/contracts/api";
import { type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { outboxDeadLetters } from "@todoke/kernel/outbox";
import { Type } from "typebox";
import { failedEventNotFound } from "./problems.ts";
import { RedriveBody, RedrivesView, redriveRequest } from "./redrive-views.ts";

export interface OutboxRoutesOptions {
  readonly db: Db;
  /** Wakes the relay. */
  readonly onRedriven: () => void;
}

// Not the format "uuid", which also accepts "urn:uuid:…".
const EventId = Type.String({ pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" });
const EventParams = Type.Object({ event_id: EventId });

const EventSummary = named("FailedEvent", {
  event_id: EventId,
  event_type: Type.String({ examples: ["EntitlementGranted"] }),
  aggregate_key: Type.String({ description: "The entity whose events keep their order." }),
  version: Type.Integer({ format: "int64", description: "The version of the aggregate, which orders its events." }),
  attempt_count: Type.Integer({ description: "Attempts so far." }),
  last_error: Type.Union([Type.String(), Type.Null()], { description: "The error of the last attempt." }),
  created_at: Type.String({ format: "date-time" }),
  parked: Type.Integer({ description: "Later events of the same aggregate, which wait for this one." }),
});

const EventDetail = named("FailedEventDetail", {
  ...EventSummary.properties,
  status: oneOf(["PENDING", "IN_FLIGHT", "PUBLISHED", "FAILED"]),
  subject: Type.String({ description: "Where it is published." }),
  payload: Type.Unknown({ description: "The event as JSON, before it is encoded." }),
  redrives: RedrivesView,
});

const EventPage = named("FailedEventPage", { events: Type.Array(EventSummary), next_cursor: NextCursor });
const RedrivenEvent = named("RedrivenEvent", { event_id: EventId, status: Type.Literal("PENDING") });

export function outboxRoutes(app: HttpApp, options: OutboxRoutesOptions): void {
  listRoute(app, options.db);
  getRoute(app, options.db);
  redriveRoute(app, options);
}

function listRoute(app: HttpApp, db: Db): void {
  app.get(
    "/debug/outbox/failed",
    {
      schema: {
        operationId: "listFailedEvents",
        summary: "List failed events",
        tags: ["Operations"],
        description: "Returns the FAILED events of the outbox, oldest first.",
        querystring: Type.Object(PageQuery),
        response: { 200: EventPage },
      },
    },
    async ({ query }) => {
      const [after = "0"] = parseCursor(query, { parts: ["bigint"] }) ?? [];
      const { rows, ...next } = await page(query, {
        read: (limit) => outboxDeadLetters.list(db, { after, limit }),
        name: ({ cursor }) => cursor,
      });
      return { events: rows.map(toView), ...next };
    },
  );
}

interface OutboxDeadLetter {
  readonly id: string;
  readonly about: string;
  readonly since: string;
  readonly version: string;
}

const toView = <Event extends OutboxDeadLetter>({ id, about, since, version, ...event }: Event) => ({
  ...event,
  event_id: id,
  aggregate_key: about,
  created_at: since,
  version: Number(version),
});

function getRoute(app: HttpApp, db: Db): void {
  app.get(
    "/debug/outbox/failed/:event_id",
    {
      schema: {
        operationId: "getFailedEvent",
        summary: "Get a failed event",
        tags: ["Operations"],
        description: "Returns an event that is FAILED or was redriven, with its payload and its redrives.",
        params: EventParams,
        refusals: [failedEventNotFound],
        response: { 200: EventDetail },
      },
    },
    async ({ params: { event_id } }) => {
      const event = await outboxDeadLetters.show(db, event_id);
      if (event?.status !== "FAILED" && !event?.redrives.length)
        throw failedEventNotFound("no event with this id is FAILED or was redriven");
      return toView(event);
    },
  );
}

function redriveRoute(app: HttpApp, { db, onRedriven }: OutboxRoutesOptions): void {
  app.post(
    "/debug/outbox/failed/:event_id/redrive",
    {
      schema: {
        operationId: "redriveFailedEvent",
        summary: "Redrive a failed event",
        tags: ["Operations"],
        description: "Publishes a FAILED event again, with all its attempts. Events parked behind it follow.",
        params: EventParams,
        body: RedriveBody,
        refusals: [failedEventNotFound],
        response: { 200: RedrivenEvent },
      },
    },
    async ({ params, body }) => {
      const [event_id] = await outboxDeadLetters.redrive(db, [params.event_id], redriveRequest(body));
      if (event_id === undefined)
        throw failedEventNotFound("no event with this id is FAILED; it may have been redriven already");
      onRedriven();
      return { event_id, status: "PENDING" as const };
    },
  );
}
