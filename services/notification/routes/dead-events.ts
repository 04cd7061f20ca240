/** Events that the inbox gave up, whole: to look at, and to try again. For those who run the service. */
import { cursorOf, type HttpApp, NextCursor, PageQuery, page } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { deadEvents, deadInboxEvents } from "@todoke/kernel/inbox";
import { RedriveBody, redriveRequest } from "@todoke/service";
import { Type } from "typebox";
import type { Redrive } from "../commands/redrive.ts";
import { deadLetterNotFound } from "../problems.ts";
import { DlqId, Limit, Nullable, RedrivenView, Redrives, Time, Uuid } from "./views.ts";

const DeadEventView = Type.Object({
  dlq_id: DlqId,
  event_id: Uuid,
  event_type: Type.String(),
  subject: Type.String(),
  aggregate_key: Type.String(),
  last_error: Nullable(Type.String()),
  dead_at: Time,
});

const DeadEventWholeView = Type.Object({
  ...DeadEventView.properties,
  // As it came: what cannot be read may have no time that is one.
  occurred_at: Type.String(),
  headers: Type.Record(Type.String(), Type.String()),
  payload_base64: Type.String(),
  status: Type.Union([
    Type.Literal("DEAD"),
    Type.Literal("PENDING"),
    Type.Literal("PROCESSING"),
    Type.Literal("RESOLVED"),
  ]),
  attempt_count: Type.Integer({ minimum: 0 }),
  redrives: Redrives,
});

const usualLimit = 50;

export interface DeadEventDeps {
  readonly db: Db;
  readonly consumer: string;
  readonly redriveEvent: Redrive;
}

export function deadEventRoutes(app: HttpApp, { db, consumer, redriveEvent }: DeadEventDeps): void {
  const params = Type.Object({ dlq_id: DlqId });
  const path = "/debug/inbox/dlq";
  const dead = deadInboxEvents(consumer);

  app.get(
    path,
    {
      schema: {
        operationId: "listDeadEvents",
        summary: "Events that the inbox gave up, oldest first",
        querystring: Type.Object({ ...PageQuery, limit: Limit }),
        response: { 200: Type.Object({ events: Type.Array(DeadEventView), next_cursor: NextCursor }) },
      },
    },
    async ({ query }) => {
      const after = BigInt(cursorOf(query, { parts: ["bigint"] })?.[0] ?? 0);
      const { rows, ...next } = await page(
        { limit: usualLimit, ...query },
        { read: (limit) => deadEvents(db, { consumer, after, limit }), name: ({ dlqId }) => dlqId.toString() },
      );
      const events = rows.map((event) => ({
        dlq_id: event.dlqId.toString(),
        event_id: event.eventId,
        event_type: event.eventType,
        subject: event.subject,
        aggregate_key: event.aggregateKey,
        last_error: event.why,
        dead_at: event.deadAt.toISOString(),
      }));
      return { events, ...next };
    },
  );

  app.get(
    `${path}/:dlq_id`,
    {
      schema: {
        operationId: "showDeadEvent",
        summary: "An event that the inbox gave up, with its bytes, why, and its redrives",
        params,
        response: { 200: DeadEventWholeView },
      },
    },
    async (request) => {
      const { dlq_id } = request.params;
      const found = await dead.show(db, dlq_id);
      if (!found) throw deadLetterNotFound(`${consumer} has given up no event under the number ${dlq_id}`);
      const { about: aggregate_key, since: dead_at } = found;
      return { ...found, dlq_id, aggregate_key, dead_at };
    },
  );

  app.post(
    `${path}/:dlq_id/redrive`,
    {
      schema: {
        operationId: "redriveEvent",
        summary: "Has the inbox try an event again; twice is once",
        params,
        body: RedriveBody,
        response: { 200: RedrivenView },
      },
    },
    ({ params: { dlq_id }, body }) => redriveEvent(dlq_id, redriveRequest(body)),
  );
}
