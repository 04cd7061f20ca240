/** Schedules: create, list, get, pause, resume, end. Their users are in schedule-users.ts. */
import { named, oneOf } from "@todoke/contracts/api";
import {
  guarded,
  type HttpApp,
  IdempotencyHeaders,
  NextCursor,
  PageQuery,
  page,
  parseCursor,
  sendResponse,
} from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { scheduleEnded, scheduleNameTaken, scheduleNotFound, scheduleUnreadable } from "../problems.ts";
import { type ScheduleView as ScheduleRow, selectSchedule, selectSchedules } from "../store/schedules.ts";
import { commandKey, idCursor, readers, withAmounts, writers } from "./request.ts";
import { PointAmount, points, Reason, time, Uuid } from "./schemas.ts";

export function scheduleRoutes(app: HttpApp, deps: Deps): void {
  createRoute(app, deps);
  listRoute(app, deps);
  getRoute(app, deps);
  statusRoute(app, deps, { action: "pause", summary: "Pause a schedule", description: "Its reservations stay." });
  statusRoute(app, deps, {
    action: "resume",
    summary: "Resume a schedule",
    description: "Missed occurrences are caught up according to `catch_up`.",
  });
  statusRoute(app, deps, { action: "end", summary: "End a schedule", description: "Its reservations stay." });
}

const CatchUp = oneOf(["all", "latest", "none"], {
  title: "CatchUp",
  description:
    "How occurrences that were missed during a downtime or a pause are caught up: `all` of them, only the `latest`, or " +
    "`none` that is more than five minutes late. Default: `all`.",
});

const ScheduleBody = named("CreateScheduleRequest", {
  name: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "Unique among all schedules.",
    examples: ["daily-bonus"],
  }),
  cron: Type.String({
    minLength: 9,
    maxLength: 200,
    description:
      "Minute, hour, day of the month (`L`: the last), month and day of the week, in the local time of `time_zone`.",
    examples: ["0 9 * * *"],
  }),
  time_zone: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "An IANA time zone name.",
    examples: ["Asia/Tokyo"],
  }),
  point_amount: PointAmount,
  lot_ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_153_600_000,
      description: "How long after the occurrence the points expire, at most 100 years. Default: never.",
    }),
  ),
  reason: Type.Optional(Reason),
  catch_up: Type.Optional(CatchUp),
});

const ScheduleStatus = Type.Union(
  [
    Type.Literal("ACTIVE"),
    Type.Literal("PAUSED", { description: "By a caller, or because this version cannot parse its cron or time zone." }),
    Type.Literal("ENDED", { description: "Permanently." }),
  ],
  { title: "ScheduleStatus" },
);

const ScheduleView = named("Schedule", {
  schedule_id: Uuid,
  ...ScheduleBody.properties,
  point_amount: points("Points for each user at every occurrence."),
  lot_ttl_seconds: Type.Optional(
    Type.Unsafe<bigint>({ type: "integer", description: "How long after the occurrence the points expire." }),
  ),
  catch_up: CatchUp,
  status: ScheduleStatus,
  next_run_at: Type.Optional(time("The next occurrence, or the one in progress.")),
  created_at: time(),
  updated_at: time(),
});

const SchedulePage = named("SchedulePage", { schedules: Type.Array(ScheduleView), next_cursor: NextCursor });

export const ScheduleParams = Type.Object({ schedule_id: Uuid });

function createRoute(app: HttpApp, { authenticate, createSchedule }: Deps): void {
  app.post(
    "/v1/points/schedules",
    withAmounts(authenticate, {
      operationId: "createSchedule",
      summary: "Create a schedule",
      tags: ["Schedules"],
      description: "A schedule grants points to its users at every occurrence. It has no users until some are added.",
      headers: IdempotencyHeaders,
      body: ScheduleBody,
      refusals: [scheduleNameTaken, scheduleUnreadable],
      response: { 201: ScheduleView },
    }),
    async (request, reply) => {
      const { time_zone, point_amount, lot_ttl_seconds, catch_up = "all", ...rest } = request.body;
      const times = { timeZone: time_zone, lotTtlSeconds: lot_ttl_seconds, catchUp: catch_up };
      const schedule = { ...rest, ...times, amount: BigInt(point_amount) };
      return sendResponse(reply, await createSchedule(commandKey(request, "SCHEDULE"), schedule));
    },
  );
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/schedules",
    guarded(authenticate, readers, {
      operationId: "listSchedules",
      summary: "List schedules",
      tags: ["Schedules"],
      description: "Returns all schedules, newest first.",
      querystring: Type.Object({ status: Type.Optional(ScheduleStatus), ...PageQuery }),
      response: { 200: SchedulePage },
    }),
    async ({ query }) => {
      const before = parseCursor(query, idCursor)?.[0];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectSchedules(db, { status: query.status, before, limit }),
        name: (row) => row.schedule_id,
      });
      return { schedules: rows, ...next };
    },
  );
}

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/schedules/:schedule_id",
    guarded(authenticate, readers, {
      operationId: "getSchedule",
      summary: "Get a schedule",
      tags: ["Schedules"],
      description: "Returns a schedule, with its status and its next occurrence.",
      params: ScheduleParams,
      refusals: [scheduleNotFound],
      response: { 200: ScheduleView },
    }),
    async ({ params: { schedule_id } }) => findSchedule(db, schedule_id),
  );
}

export async function findSchedule(db: Db, scheduleId: string): Promise<ScheduleRow> {
  const schedule = await selectSchedule(db, scheduleId);
  if (!schedule) throw scheduleNotFound(`There is no schedule ${scheduleId}.`);
  return schedule;
}

export const idempotentDescription = "This operation is idempotent and takes no Idempotency-Key.";

interface StatusRoute {
  readonly action: "pause" | "resume" | "end";
  readonly summary: string;
  readonly description: string;
}

function statusRoute(app: HttpApp, deps: Deps, { action, summary, description }: StatusRoute): void {
  const operationId = `${action}Schedule` as const;
  app.post(
    `/v1/points/schedules/:schedule_id/${action}`,
    guarded(deps.authenticate, writers, {
      operationId,
      summary,
      tags: ["Schedules"],
      description: `${description} ${idempotentDescription}`,
      params: ScheduleParams,
      refusals: [scheduleEnded, scheduleNotFound],
      response: { 200: ScheduleView },
    }),
    async (request) => deps[operationId]((request.params as { schedule_id: string }).schedule_id),
  );
}
