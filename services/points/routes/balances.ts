/** What a user has, what is to come and what will run out. */
import { cursorOf, type HttpApp, NextCursor, PageQuery, page, requires } from "@todoke/http";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { selectPointsToCome, selectReservations } from "../reservations/store/reservations.ts";
import { selectBalance, selectBalanceAsOf } from "../store/balances.ts";
import { selectExpiring } from "../store/expiring.ts";
import { idCursor, ownReaders, readers, timeOf } from "./request.ts";
import {
  BalanceView,
  ConfirmedView,
  GivenTime,
  OneUser,
  points,
  ReservationStatus,
  ReservationView,
  time,
  UserId,
  Uuid,
} from "./schemas.ts";

export function balanceRoutes(app: HttpApp, deps: Deps): void {
  confirmRoute(app, deps);
  balanceRoute(app, deps);
  reservedPointsRoute(app, deps);
  userReservationsRoute(app, deps);
  expiringRoute(app, deps);
}

function confirmRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/point/confirm",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "confirmPoints",
        summary: "What a user has, and what is still to come; whoever never had points has none",
        querystring: OneUser,
        response: { 200: ConfirmedView },
      },
    },
    async ({ query: { user_id } }) => selectBalance(db, user_id),
  );
}

function balanceRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/balance",
    {
      ...requires(authenticate, ownReaders),
      schema: {
        operationId: "showBalance",
        summary: "What a user has, now or as of a time",
        params: OneUser,
        querystring: Type.Object({
          at: Type.Optional(GivenTime("As of then; a time to come is answered as now.")),
        }),
        response: { 200: BalanceView },
      },
    },
    async ({ params: { user_id }, query: { at } }) =>
      at === undefined
        ? selectBalance(db, user_id)
        : selectBalanceAsOf(db, user_id, timeOf(at, "query.at", "microsecond")),
  );
}

const toCome = ["PENDING", "PROCESSING"] as const;

function reservedPointsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/users/:user_id/reserved-points",
    {
      ...requires(authenticate, ownReaders),
      schema: {
        operationId: "listReservedPoints",
        summary: "What is reserved for a user and not granted yet, the newest first",
        params: OneUser,
        querystring: Type.Object(PageQuery),
        response: {
          200: Type.Object({
            user_id: UserId,
            reserved_points: points("All that is still to come, on this page or not; it may be more than 2^63 - 1."),
            reservations: Type.Array(ReservationView),
            next_cursor: NextCursor,
          }),
        },
      },
    },
    async ({ params: { user_id }, query }) => {
      const before = cursorOf(query, idCursor)?.[0];
      const reserved_points = await selectPointsToCome(db, user_id);
      const { rows, ...next } = await page(query, {
        read: (limit) => selectReservations(db, { userId: user_id, statuses: toCome, before, limit }),
        name: (row) => row.id,
      });
      return { user_id, reserved_points, reservations: rows, ...next };
    },
  );
}

function userReservationsRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/reservations",
    {
      ...requires(authenticate, ownReaders),
      schema: {
        operationId: "listReservations",
        summary: "All that was ever reserved for a user, the newest first",
        params: OneUser,
        querystring: Type.Object({ status: Type.Optional(ReservationStatus), ...PageQuery }),
        response: {
          200: Type.Object({ user_id: UserId, reservations: Type.Array(ReservationView), next_cursor: NextCursor }),
        },
      },
    },
    async ({ params: { user_id }, query }) => {
      const [before, statuses] = [cursorOf(query, idCursor)?.[0], query.status && [query.status]];
      const { rows, ...next } = await page(query, {
        read: (limit) => selectReservations(db, { userId: user_id, statuses, before, limit }),
        name: (row) => row.id,
      });
      return { user_id, reservations: rows, ...next };
    },
  );
}

const daysUsual = 30;

function expiringRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/users/:user_id/expiring",
    {
      ...requires(authenticate, ownReaders),
      schema: {
        operationId: "listExpiring",
        summary: "What will run out soon, the soonest first: the order in which it is spent",
        params: OneUser,
        querystring: Type.Object({
          within_days: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 3_650, description: `${daysUsual} if not given.` }),
          ),
          ...PageQuery,
        }),
        response: { 200: Type.Object({ user_id: UserId, lots: Type.Array(LotView), next_cursor: NextCursor }) },
      },
    },
    async ({ params: { user_id }, query }) => {
      const after = lotOf(query);
      const withinSeconds = (query.within_days ?? daysUsual) * 86_400;
      const { rows, ...next } = await page(query, {
        read: (limit) => selectExpiring(db, { userId: user_id, withinSeconds, after, limit }),
        name: (lot) => `${lot.expires_at} ${lot.version}`,
      });
      return { user_id, lots: rows, ...next };
    },
  );
}

const LotView = Type.Object({
  lot_id: Type.String({ ...Uuid, description: "The transaction that added or granted it." }),
  remaining: points("What runs out unless it is spent before."),
  granted: points("How many points it was in the beginning."),
  expires_at: time(),
});

/** The lot that a cursor names. */
function lotOf(query: { readonly cursor?: string }) {
  const [expires_at, version] = cursorOf(query, { parts: ["timeMillis", "bigint"] }) ?? [];
  return expires_at === undefined || version === undefined ? undefined : { expires_at, version: BigInt(version) };
}
