/** Recurring grants: made, looked at, paused, resumed and ended. Who gets them is in schedule-users.ts. */
import {
  cursorOf,
  type HttpApp,
  IdempotencyHeaders,
  NextCursor,
  PageQuery,
  ProblemView,
  page,
  requires,
  sendAnswer,
} from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { scheduleNotFound } from "../reservations/problems.ts";
import {
  type ScheduleView as FoundSchedule,
  selectSchedule,
  selectSchedules,
} from "../reservations/store/schedule-reads.ts";
import { commandKey, idCursor, readers, takesAmounts, writers } from "./request.ts";
import { PointAmount, points, Reason, time, Uuid } from "./schemas.ts";

export function scheduleRoutes(app: HttpApp, deps: Deps): void {
  createRoute(app, deps);
  listRoute(app, deps);
  showRoute(app, deps);
  changeRoutes(app, deps);
}

const CatchUp = Type.Union([Type.Literal("all"), Type.Literal("latest"), Type.Literal("none")], {
  description:
    "What becomes of occurrences that nobody was there for (a downtime, a pause): all of them are granted late, only the " +
    "latest, or none that is more than five minutes late. `all` if not given.",
});

const ScheduleBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 64, description: "Nobody else's.", examples: ["daily-bonus"] }),
  cron: Type.String({
    minLength: 9,
    maxLength: 200,
    description:
      "Minute, hour, day of the month (`L`: the last), month, day of the week, on the clock of the time zone.",
    examples: ["0 9 * * *"],
  }),
  time_zone: Type.String({ minLength: 1, maxLength: 64, description: "An IANA name.", examples: ["Asia/Tokyo"] }),
  point_amount: PointAmount,
  lot_ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_153_600_000,
      description: "How long after each occurrence its points run out, up to 100 years; never, if not given.",
    }),
  ),
  reason: Type.Optional(Reason),
  catch_up: Type.Optional(CatchUp),
});

const ScheduleStatus = Type.Union([
  Type.Literal("ACTIVE"),
  Type.Literal("PAUSED", { description: "By a caller, or because its cron or time zone is not known any more." }),
  Type.Literal("ENDED", { description: "For good." }),
]);

const ScheduleView = Type.Object({
  schedule_id: Uuid,
  ...ScheduleBody.properties,
  point_amount: points("What each user gets at every occurrence."),
  lot_ttl_seconds: Type.Optional(points("How long after each occurrence its points run out.")),
  catch_up: CatchUp,
  status: ScheduleStatus,
  next_run_at: Type.Optional(time("The occurrence that is next, or under way.")),
  created_at: time(),
  updated_at: time(),
});

export const OneSchedule = Type.Object({ schedule_id: Uuid });

function createRoute(app: HttpApp, { authenticate, createSchedule }: Deps): void {
  app.post(
    "/v1/points/schedules",
    {
      ...takesAmounts(requires(authenticate, writers)),
      schema: {
        operationId: "createSchedule",
        summary: "Makes a recurring grant, which nobody gets until users are added",
        headers: IdempotencyHeaders,
        body: ScheduleBody,
        response: { 201: ScheduleView, 409: ProblemView, 422: ProblemView },
      },
    },
    async (request, reply) => {
      const { time_zone, point_amount, lot_ttl_seconds, catch_up = "all", ...rest } = request.body;
      const times = { timeZone: time_zone, lotTtlSeconds: lot_ttl_seconds, catchUp: catch_up };
      const wanted = { ...rest, ...times, amount: BigInt(point_amount) };
      return sendAnswer(reply, await createSchedule(commandKey(request, "SCHEDULE"), wanted));
    },
  );
}

function listRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/schedules",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "listSchedules",
        summary: "All recurring grants, the newest first",
        querystring: Type.Object({ status: Type.Optional(ScheduleStatus), ...PageQuery }),
        response: { 200: Type.Object({ schedules: Type.Array(ScheduleView), next_cursor: NextCursor }) },
      },
    },
    async ({ query }) => {
      const before = cursorOf(query, idCursor)?.[0];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectSchedules(db, { status: query.status, before, limit }),
        name: (row) => row.schedule_id,
      });
      return { schedules: rows, ...next };
    },
  );
}

function showRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/schedules/:schedule_id",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "showSchedule",
        summary: "A recurring grant, and when it comes round next",
        params: OneSchedule,
        response: { 200: ScheduleView, 404: ProblemView },
      },
    },
    async ({ params: { schedule_id } }) => foundSchedule(db, schedule_id),
  );
}

export async function foundSchedule(db: Db, scheduleId: string): Promise<FoundSchedule> {
  const found = await selectSchedule(db, scheduleId);
  if (!found) throw scheduleNotFound(`there is no recurring grant ${scheduleId}`);
  return found;
}

const acts = {
  pause: { status: "PAUSED", summary: "Lets a recurring grant rest; what is booked stays booked" },
  resume: { status: "ACTIVE", summary: "Lets it go on; what was missed is caught up as `catch_up` says" },
  end: { status: "ENDED", summary: "Ends a recurring grant for good; what is booked stays booked" },
} as const;

function changeRoutes(app: HttpApp, { authenticate, changeSchedule }: Deps): void {
  for (const [act, { status, summary }] of Object.entries(acts)) {
    app.post(
      `/v1/points/schedules/:schedule_id/${act}`,
      {
        ...requires(authenticate, writers),
        schema: {
          operationId: `${act}Schedule`,
          summary,
          description: "Said twice it is the same, so it takes no Idempotency-Key.",
          params: OneSchedule,
          response: { 200: ScheduleView, 404: ProblemView, 409: ProblemView },
        },
      },
      async (request) => changeSchedule((request.params as { schedule_id: string }).schedule_id, status),
    );
  }
}
