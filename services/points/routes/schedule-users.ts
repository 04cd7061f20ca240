/** Who gets a recurring grant. */
import { cursorOf, type HttpApp, NextCursor, PageQuery, ProblemView, page, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectScheduleUsers } from "../reservations/store/schedule-reads.ts";
import { readers, writers } from "./request.ts";
import { foundSchedule, OneSchedule } from "./schedules.ts";
import { UserId, Uuid } from "./schemas.ts";

const path = "/v1/points/schedules/:schedule_id/users";

/** A thousand of the longest names, in UTF-8, are half of this. */
const bodyMaxBytes = 1024 * 1024;

export function scheduleUserRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  changeRoute(app, deps, { method: "PUT", act: "add", summary: "Adds users, who get every occurrence from now on" });
  changeRoute(app, deps, { method: "DELETE", act: "remove", summary: "Takes users out; what is booked stays booked" });
}

interface UsersRoute {
  readonly method: "DELETE" | "PUT";
  readonly act: "add" | "remove";
  readonly summary: string;
}

function changeRoute(app: HttpApp, deps: Deps, { method, act, summary }: UsersRoute): void {
  app.route({
    method,
    url: path,
    ...requires(deps.authenticate, writers),
    bodyLimit: bodyMaxBytes,
    schema: {
      operationId: `${act}ScheduleUsers`,
      summary,
      description: "Said twice it is the same, so it takes no Idempotency-Key.",
      params: OneSchedule,
      body: Type.Object({ user_ids: Type.Array(UserId, { minItems: 1, maxItems: 1_000 }) }),
      response: {
        200: Type.Object({
          schedule_id: Uuid,
          changed: Type.Integer({ description: "For how many of them it made a difference." }),
        }),
        404: ProblemView,
        409: ProblemView,
      },
    },
    handler: async ({ params: { schedule_id }, body: { user_ids } }) => ({
      schedule_id,
      changed: await deps.changeScheduleUsers({ scheduleId: schedule_id, userIds: user_ids, act }),
    }),
  });
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    path,
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "listScheduleUsers",
        summary: "Who gets a recurring grant, by name",
        params: OneSchedule,
        querystring: Type.Object(PageQuery),
        response: {
          200: Type.Object({ schedule_id: Uuid, user_ids: Type.Array(UserId), next_cursor: NextCursor }),
          404: ProblemView,
        },
      },
    },
    async ({ params: { schedule_id }, query }) => {
      const after = cursorOf(query, { parts: ["text"] })?.[0] ?? "";
      await foundSchedule(db, schedule_id);
      const { rows, ...next } = await page(query, {
        read: (limit) => selectScheduleUsers(db, { scheduleId: schedule_id, after, limit }),
        name: (row) => row.user_id,
      });
      return { schedule_id, user_ids: rows.map((row) => row.user_id), ...next };
    },
  );
}
