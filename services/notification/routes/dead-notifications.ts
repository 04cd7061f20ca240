/** Dead letters of notifications, for operators. */
import { named } from "@todoke/contracts/api";
import { type HttpApp, NextCursor, PageQuery, page, parseCursor } from "@todoke/http";
import {
  type DeadLetterDeps,
  deadLetterNotFound,
  RedriveBody,
  RedrivenView,
  RedrivesView,
  redriveRequest,
} from "@todoke/service";
import { Type } from "typebox";
import { deadNotifications } from "../store/dead-notifications.ts";
import { DlqId, Limit, NotificationData, NotificationStatus, Nullable, TextView, Time, UserId, Uuid } from "./views.ts";

const DeadNotificationView = named("DeadNotification", {
  dlq_id: DlqId,
  notification_id: Uuid,
  event_id: Uuid,
  user_id: UserId,
  event_type: Type.String(),
  attempt_count: Type.Integer({ minimum: 0 }),
  last_error: Nullable(Type.String()),
  failed_at: Time,
});

const EventPayload = Type.Unsafe<Readonly<Record<string, unknown>>>({
  title: "EventPayload",
  type: "object",
  additionalProperties: true,
  description: "The event as JSON.",
});

const DeadNotificationDetailView = named("DeadNotificationDetail", {
  ...DeadNotificationView.properties,
  text: TextView,
  data: Nullable(NotificationData),
  payload: Nullable(EventPayload),
  redriven_at: Nullable(Time),
  status: Nullable(NotificationStatus),
  redrives: RedrivesView,
});

const DeadNotificationPage = named("DeadNotificationPage", {
  notifications: Type.Array(DeadNotificationView),
  next_cursor: NextCursor,
});

const defaultLimit = 50;

export function deadNotificationRoutes(app: HttpApp, { db, redrive }: DeadLetterDeps): void {
  const params = Type.Object({ notification_id: Uuid });
  const path = "/debug/notification/dlq";

  app.get(
    path,
    {
      schema: {
        operationId: "listDeadNotifications",
        summary: "List dead notifications",
        tags: ["Operations"],
        description: "Returns the dead-lettered notifications that are not redriven yet, oldest first.",
        querystring: Type.Object({ ...PageQuery, limit: Limit }),
        response: { 200: DeadNotificationPage },
      },
    },
    async ({ query }) => {
      const after = parseCursor(query, { parts: ["bigint"] })?.[0] ?? "0";
      const { rows, ...next } = await page(
        { limit: defaultLimit, ...query },
        { read: (limit) => deadNotifications.list(db, { after, limit }), name: ({ cursor }) => cursor },
      );
      return { notifications: rows.map((row) => ({ ...row, notification_id: row.id })), ...next };
    },
  );

  app.get(
    `${path}/:notification_id`,
    {
      schema: {
        operationId: "getDeadNotification",
        summary: "Get a dead notification",
        tags: ["Operations"],
        description:
          "Returns a dead-lettered notification with its text, its event, its current status and its redrives.",
        params,
        refusals: [deadLetterNotFound],
        response: { 200: DeadNotificationDetailView },
      },
    },
    async (request) => {
      const { notification_id } = request.params;
      const found = await deadNotifications.show(db, notification_id);
      if (!found) throw deadLetterNotFound(`notification ${notification_id} was never dead-lettered`);
      return { ...found, notification_id: found.id };
    },
  );

  app.post(
    `${path}/:notification_id/redrive`,
    {
      schema: {
        operationId: "redriveNotification",
        summary: "Redrive a notification",
        tags: ["Operations"],
        description: "A FAILED notification is sent again under the same id. Repeating the call has no effect.",
        params,
        body: RedriveBody,
        refusals: [deadLetterNotFound],
        response: { 200: RedrivenView },
      },
    },
    ({ params: { notification_id }, body }) => redrive(notification_id, redriveRequest(body)),
  );
}
