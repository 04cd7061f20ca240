/** Routes for staff: adjusting the points of a user, and late reservations. */
import { AdjustPointsBody, named } from "@todoke/contracts/api";
import {
  guarded,
  type HttpApp,
  IdempotencyHeaders,
  idempotencyKey,
  problems,
  sendResponse,
  staffActor,
} from "@todoke/http";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { balanceOverflow, insufficientPoints, lotEndInThePast, tooManyLots } from "../problems.ts";
import { selectDueReservations, selectUpcomingReservations } from "../store/reservations.ts";
import { operators, parseTime, withAmounts } from "./request.ts";
import { ReservationView, TransactionView, UserParams } from "./schemas.ts";

const DueReservations = named("DueReservations", { reservations: Type.Array(ReservationView) });
const defaultLimit = 50;

export function staffRoutes(app: HttpApp, { authenticate, db, adjustPoints }: Deps): void {
  app.post(
    "/v1/admin/users/:user_id/point-adjustments",
    withAmounts(
      authenticate,
      {
        operationId: "adjustPoints",
        summary: "Adjust points",
        tags: ["Points"],
        description:
          "Adds points to a user or spends them, and records who did it and why. An adjustment can undo another.",
        params: UserParams,
        headers: IdempotencyHeaders,
        body: AdjustPointsBody,
        refusals: [
          balanceOverflow,
          insufficientPoints,
          lotEndInThePast,
          tooManyLots,
          problems.actNotFound,
          problems.actAlreadyUndone,
        ],
        response: { 200: TransactionView },
      },
      operators,
    ),
    async (request, reply) => {
      const { direction, point_amount, expires_at, reason, undoes } = request.body;
      const adjustment = {
        key: idempotencyKey(request, request.caller),
        actor: staffActor(request),
        direction,
        userId: request.params.user_id,
        amount: BigInt(point_amount),
        expiresAt: expires_at === undefined ? null : parseTime(expires_at, "body.expires_at", "millisecond"),
        reason,
        undoes,
      };
      return sendResponse(reply, await adjustPoints(adjustment));
    },
  );
  reservationsRoute(app, {
    path: "/v1/admin/points/late-reservations",
    operationId: "listLateReservations",
    summary: "List late reservations",
    description: "Returns the reservations that are due and not granted, the longest due first.",
    authenticate,
    read: (limit) => selectDueReservations(db, limit),
  });
  reservationsRoute(app, {
    path: "/v1/admin/points/upcoming-reservations",
    operationId: "listUpcomingReservations",
    summary: "List upcoming reservations",
    description: "Returns the reservations that become due next, the soonest first.",
    authenticate,
    read: (limit) => selectUpcomingReservations(db, limit),
  });
}

interface ReservationsRoute extends Pick<Deps, "authenticate"> {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly read: (limit: number) => Promise<Static<typeof ReservationView>[]>;
}

/** Of all users. */
function reservationsRoute(app: HttpApp, { path, authenticate, read, ...texts }: ReservationsRoute): void {
  app.get(
    path,
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        ...texts,
        tags: ["Reservations"],
        querystring: Type.Object({
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 200, description: "Rows at most; the default is 50." }),
          ),
        }),
        response: { 200: DueReservations },
      },
    ),
    async ({ query: { limit = defaultLimit } }) => ({ reservations: await read(limit) }),
  );
}
