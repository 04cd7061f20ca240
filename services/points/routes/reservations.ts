/**
 * Grants booked ahead, one by one: booked, looked at, taken back.
 *
 * A request without an Idempotency-Key is known by its body: the same body again, by the same caller, is the same
 * reservation, for ever. Whoever wants a second one alike sends a key.
 */
import { type HttpApp, IdempotencyHeaders, ProblemView, requires, sendAnswer } from "@todoke/http";
import { digestOf, type IdempotencyKey } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import type { Reservation } from "../reservations/index.ts";
import { reservationNotFound } from "../reservations/problems.ts";
import { selectReservation } from "../reservations/store/reservations.ts";
import { commandKey, type Request, readers, scopeOf, takesAmounts, timeOf, writers } from "./request.ts";
import { BookedView, ReservationView, ReserveBody, Uuid } from "./schemas.ts";

export function reservationRoutes(app: HttpApp, deps: Deps): void {
  reserveRoutes(app, deps);
  showRoute(app, deps);
  cancelRoute(app, deps);
}

function reserveRoutes(app: HttpApp, { authenticate, reserve }: Deps): void {
  const route = (path: string, operationId: string) =>
    app.post(
      path,
      {
        ...takesAmounts(requires(authenticate, writers)),
        schema: {
          operationId,
          summary: "Books a grant of points ahead",
          description:
            "Without an Idempotency-Key one is made of the body: the same body again is the same reservation, also after " +
            "it was granted or cancelled.",
          headers: Type.Partial(IdempotencyHeaders),
          body: ReserveBody,
          response: { 201: BookedView, 409: ProblemView, 422: ProblemView },
        },
      },
      async (request, reply) =>
        sendAnswer(reply, await reserve({ key: reservationKey(request), ...reservationOf(request.body, "body") })),
    );
  route("/point/reserve", "reservePoints");
  route("/v1/points/reservations", "createReservation");
}

function reservationKey(request: Request): IdempotencyKey {
  if (request.headers["idempotency-key"] !== undefined) return commandKey(request, "RESERVE");
  const requestHash = digestOf(request.body);
  return { scope: scopeOf(request, "RESERVE"), key: `body:${requestHash.toString("hex")}`, requestHash };
}

/** `place` is where the body stands in the request, for refusals. */
export function reservationOf(body: Static<typeof ReserveBody>, place: string): Omit<Reservation, "key"> {
  const { user_id, point_amount, execute_at, expires_at, reason } = body;
  return {
    userId: user_id,
    amount: BigInt(point_amount),
    executeAt: timeOf(execute_at, `${place}.execute_at`, "microsecond"),
    expiresAt: expires_at === undefined ? undefined : timeOf(expires_at, `${place}.expires_at`, "millisecond"),
    reason,
  };
}

const OneReservation = Type.Object({ reservation_id: Uuid });

function showRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/reservations/:reservation_id",
    {
      ...requires(authenticate, readers),
      schema: {
        operationId: "showReservation",
        summary: "A grant booked ahead, and what became of it",
        params: OneReservation,
        response: { 200: ReservationView, 404: ProblemView },
      },
    },
    async ({ params: { reservation_id } }) => {
      const found = await selectReservation(db, reservation_id);
      if (!found) throw reservationNotFound(`there is no reservation ${reservation_id}`);
      return found;
    },
  );
}

function cancelRoute(app: HttpApp, { authenticate, cancel }: Deps): void {
  app.delete(
    "/v1/points/reservations/:reservation_id",
    {
      ...requires(authenticate, writers),
      schema: {
        operationId: "cancelReservation",
        summary: "Takes back a grant booked ahead, as long as it is PENDING",
        headers: IdempotencyHeaders,
        params: OneReservation,
        response: {
          200: Type.Object({ id: Uuid, status: Type.Literal("CANCELLED") }),
          404: ProblemView,
          409: ProblemView,
        },
      },
    },
    async (request, reply) =>
      sendAnswer(reply, await cancel(request.params.reservation_id, commandKey(request, "CANCEL"))),
  );
}
