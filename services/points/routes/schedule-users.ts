/** The users of a schedule. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { scheduleEnded, scheduleNotFound } from "../problems.ts";
import { selectScheduleUsers } from "../store/schedules.ts";
import { readers, writers } from "./request.ts";
import { findSchedule, idempotentDescription, ScheduleParams } from "./schedules.ts";
import { UserId, Uuid } from "./schemas.ts";

const path = "/v1/points/schedules/:schedule_id/users";

/** 1,000 user ids of maximum length take half of this in UTF-8. */
const bodyMaxBytes = 1024 * 1024;

const UsersBody = named("ScheduleUsersRequest", { user_ids: Type.Array(UserId, { minItems: 1, maxItems: 1_000 }) });
const ChangedUsers = named("ChangedScheduleUsers", {
  schedule_id: Uuid,
  changed: Type.Integer({ description: "The number of users that were added or removed." }),
});
const UserPage = named("ScheduleUserPage", {
  schedule_id: Uuid,
  user_ids: Type.Array(UserId),
  next_cursor: NextCursor,
});

export function scheduleUserRoutes(app: HttpApp, deps: Deps): void {
  listRoute(app, deps);
  changeRoute(app, deps, {
    method: "PUT",
    operationId: "addScheduleUsers",
    summary: "Add users to a schedule",
    description: "They get every following occurrence.",
  });
  changeRoute(app, deps, {
    method: "DELETE",
    operationId: "removeScheduleUsers",
    summary: "Remove users from a schedule",
    description: "Their reservations stay.",
  });
}

interface UsersRoute {
  readonly method: "DELETE" | "PUT";
  readonly operationId: "addScheduleUsers" | "removeScheduleUsers";
  readonly summary: string;
  readonly description: string;
}

function changeRoute(app: HttpApp, deps: Deps, { method, operationId, summary, description }: UsersRoute): void {
  app.route({
    method,
    url: path,
    ...requires(deps.authenticate, writers),
    bodyLimit: bodyMaxBytes,
    schema: {
      operationId,
      summary,
      tags: ["Schedules"],
      description: `${description} ${idempotentDescription}`,
      params: ScheduleParams,
      body: UsersBody,
      refusals: [scheduleEnded, scheduleNotFound],
      response: {
        200: ChangedUsers,
      },
    },
    handler: async ({ params: { schedule_id }, body: { user_ids } }) => ({
      schedule_id,
      changed: await deps[operationId](schedule_id, user_ids),
    }),
  });
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    path,
    guarded(authenticate, readers, {
      operationId: "listScheduleUsers",
      summary: "List the users of a schedule",
      tags: ["Schedules"],
      description: "Returns the IDs of the users, in their order.",
      params: ScheduleParams,
      querystring: Type.Object(PageQuery),
      refusals: [scheduleNotFound],
      response: {
        200: UserPage,
      },
    }),
    async ({ params: { schedule_id }, query }) => {
      const after = parseCursor(query, { parts: ["text"] })?.[0] ?? "";
      await findSchedule(db, schedule_id);
      const { rows, ...next } = await page(query, {
        read: (limit) => selectScheduleUsers(db, { scheduleId: schedule_id, after, limit }),
        name: (row) => row.user_id,
      });
      return { schedule_id, user_ids: rows.map((row) => row.user_id), ...next };
    },
  );
}
