/** A user's balance, reservations and expiring lots. */
import { named } from "@todoke/contracts/api";
import { guarded, type HttpApp, NextCursor, PageQuery, page, parseCursor, shareReads } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectBalance, selectBalanceAsOf, selectBalances } from "../store/balances.ts";
import { selectExpiringLots } from "../store/expiring-lots.ts";
import { type ReservationsPage, selectReservations, selectReservedPoints } from "../store/reservations.ts";
import { idCursor, ownReaders, parseTime, readers } from "./request.ts";
import {
  BalanceView,
  ConfirmedView,
  pointSum,
  points,
  RequestTime,
  ReservationStatus,
  ReservationView,
  time,
  UserId,
  UserParams,
  Uuid,
} from "./schemas.ts";

export function balanceRoutes(app: HttpApp, deps: Deps): void {
  confirmRoute(app, deps);
  balanceRoute(app, deps);
  balancesRoute(app, deps);
  reservedPointsRoute(app, deps);
  userReservationsRoute(app, deps);
  expiringRoute(app, deps);
}

function confirmRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/point/confirm",
    guarded(authenticate, readers, {
      operationId: "getPoints",
      summary: "Get a balance with pending points",
      tags: ["Points"],
      description:
        "Returns the points that a user can spend, and those that are reserved. A user who never had points has a balance of 0.",
      querystring: UserParams,
      response: { 200: ConfirmedView },
    }),
    async ({ query: { user_id } }) => selectBalance(db, user_id),
  );
}

function balanceRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/balance",
    guarded(authenticate, ownReaders, {
      operationId: "getBalance",
      summary: "Get a balance",
      tags: ["Points"],
      description: "Returns the balance of a user, now or at a past time.",
      params: UserParams,
      querystring: Type.Object({
        at: Type.Optional(RequestTime("Return the balance at this time. A time in the future counts as now.")),
      }),
      response: { 200: BalanceView },
    }),
    async ({ params: { user_id }, query: { at } }) =>
      at === undefined
        ? selectBalance(db, user_id)
        : selectBalanceAsOf(db, user_id, parseTime(at, "query.at", "microsecond")),
  );
}

const notGranted = ["PENDING", "PROCESSING"] as const;

const ReservationPage = named("ReservationPage", {
  user_id: UserId,
  reservations: Type.Array(ReservationView),
  next_cursor: NextCursor,
});
const ReservedPointsPage = named("ReservedPointsPage", {
  user_id: UserId,
  reserved_points: pointSum("The sum over all pages."),
  reservations: Type.Array(ReservationView),
  next_cursor: NextCursor,
});

function balancesRoute(app: HttpApp, { authenticate, db }: Deps): void {
  shareReads(app, {
    authenticate,
    name: "balances",
    operationId: "getBalances",
    summary: "Get the balances of many users",
    tag: "Points",
    view: BalanceView,
    read: async (userIds) => (await selectBalances(db, userIds)).map((value) => ({ status: 200, value })),
  });
}

function reservedPointsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/users/:user_id/reserved-points",
    guarded(authenticate, ownReaders, {
      operationId: "listReservedPoints",
      summary: "List reserved points",
      tags: ["Reservations"],
      description: "Returns the reservations of a user that are not granted yet, newest first, and their sum.",
      params: UserParams,
      querystring: Type.Object(PageQuery),
      response: { 200: ReservedPointsPage },
    }),
    async ({ params: { user_id }, query }) => {
      const reservations = await readReservations(db, { user_id, query, statuses: notGranted });
      return { ...reservations, reserved_points: await selectReservedPoints(db, user_id) };
    },
  );
}

function userReservationsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/reservations",
    guarded(authenticate, ownReaders, {
      operationId: "listReservations",
      summary: "List reservations",
      tags: ["Reservations"],
      description: "Returns all reservations of a user, newest first.",
      params: UserParams,
      querystring: Type.Object({ status: Type.Optional(ReservationStatus), ...PageQuery }),
      response: { 200: ReservationPage },
    }),
    async ({ params: { user_id }, query }) =>
      readReservations(db, { user_id, query, statuses: query.status && [query.status] }),
  );
}

interface ReservationsQuery {
  readonly user_id: string;
  readonly query: { readonly limit?: number; readonly cursor?: string };
  readonly statuses: ReservationsPage["statuses"];
}

async function readReservations(db: Db, { user_id, query, statuses }: ReservationsQuery) {
  const before = parseCursor(query, idCursor)?.[0];
  const { rows: reservations, ...next } = await page(query, {
    read: (limit) => selectReservations(db, { userId: user_id, statuses, before, limit }),
    name: (row) => row.id,
  });
  return { user_id, reservations, ...next };
}

const daysDefault = 30;

function expiringRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/expiring",
    guarded(authenticate, ownReaders, {
      operationId: "listExpiring",
      summary: "List expiring points",
      tags: ["Points"],
      description:
        "Returns the lots of a user that expire soon. The lot that expires soonest is first; it is also spent first.",
      params: UserParams,
      querystring: Type.Object({
        within_days: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 3_650,
            description: `How far to look ahead. Default: ${daysDefault}.`,
          }),
        ),
        ...PageQuery,
      }),
      response: { 200: LotPage },
    }),
    async ({ params: { user_id }, query }) => {
      const after = parseLotCursor(query);
      const withinSeconds = (query.within_days ?? daysDefault) * 86_400;
      const { rows, ...next } = await page(query, {
        read: (limit) => selectExpiringLots(db, { userId: user_id, withinSeconds, after, limit }),
        name: (lot) => `${lot.expires_at} ${lot.version}`,
      });
      return { user_id, lots: rows, ...next };
    },
  );
}

const LotView = named("Lot", {
  lot_id: Type.String({ ...Uuid, description: "The ID of the transaction that created it." }),
  remaining: points("Points that expire unless they are spent before."),
  granted: points("The original number of points."),
  expires_at: time("When the rest expires."),
});

const LotPage = named("LotPage", { user_id: UserId, lots: Type.Array(LotView), next_cursor: NextCursor });

function parseLotCursor(query: { readonly cursor?: string }) {
  const [expires_at, version] = parseCursor(query, { parts: ["timeMillis", "bigint"] }) ?? [];
  return expires_at === undefined || version === undefined ? undefined : { expires_at, version: BigInt(version) };
}
