/**
 * Reservations: create, batch, get, cancel.
 *
 * A request without an Idempotency-Key is identified by its body: the same body from the same caller is always the same
 * reservation. To make a second one alike, a caller sends a key.
 */
import { named } from "@todoke/contracts/api";
import {
  batchResults,
  guarded,
  type HttpApp,
  IdempotencyHeaders,
  ItemKey,
  OptionalIdempotencyHeaders,
  sendBatch,
  sendResponse,
} from "@todoke/http";
import { digestJson, type IdempotencyKey } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Reservation } from "../commands/reserve-points.ts";
import type { Deps } from "../deps.ts";
import { lotEndInThePast, reservationNotFound, reservationNotPending } from "../problems.ts";
import { selectReservation } from "../store/reservations.ts";
import { commandKey, keyScope, parseTime, type Request, readers, withAmounts, writers } from "./request.ts";
import { NewReservationView, ReservationView, ReserveBody, Uuid } from "./schemas.ts";

export function reservationRoutes(app: HttpApp, deps: Deps): void {
  reserveRoute(app, deps, { url: "/point/reserve", operationId: "reservePoints" });
  reserveRoute(app, deps, { url: "/v1/points/reservations", operationId: "reservePointsV1" });
  batchRoute(app, deps);
  getRoute(app, deps);
  cancelRoute(app, deps);
}

interface ReservePath {
  readonly url: string;
  readonly operationId: string;
}

function reserveRoute(app: HttpApp, { authenticate, reservePoints }: Deps, { url, operationId }: ReservePath): void {
  app.post(
    url,
    withAmounts(authenticate, {
      operationId,
      summary: "Reserve points",
      tags: ["Reservations"],
      description:
        "Reserves a grant of points at a future time. Without an Idempotency-Key, the key is derived from the body: the same body returns the same reservation, even " +
        "after it was granted or cancelled. `POST /point/reserve` and `POST /v1/points/reservations` are the same.",
      headers: OptionalIdempotencyHeaders,
      body: ReserveBody,
      refusals: [lotEndInThePast],
      response: { 201: NewReservationView },
    }),
    async (request, reply) =>
      sendResponse(
        reply,
        await reservePoints({ key: reservationKey(request), ...toReservation(request.body, "body") }),
      ),
  );
}

function reservationKey(request: Request): IdempotencyKey {
  if (request.headers["idempotency-key"] !== undefined) return commandKey(request, "RESERVE");
  const requestHash = digestJson(request.body);
  return { scope: keyScope(request, "RESERVE"), key: `body:${requestHash.toString("hex")}`, requestHash };
}

/** `path` is the body's position in the request, for errors. */
function toReservation(body: Static<typeof ReserveBody>, path: string): Omit<Reservation, "key"> {
  const { user_id, point_amount, execute_at, expires_at, reason } = body;
  return {
    userId: user_id,
    amount: BigInt(point_amount),
    executeAt: parseTime(execute_at, `${path}.execute_at`, "microsecond"),
    expiresAt: expires_at === undefined ? undefined : parseTime(expires_at, `${path}.expires_at`, "millisecond"),
    reason,
  };
}

const itemsMax = 1_000;

/** 1,000 items of maximum length take three quarters of this in UTF-8. */
const bodyMaxBytes = 2 * 1024 * 1024;

const Item = named("ReservationBatchItem", { idempotency_key: ItemKey, ...ReserveBody.properties });

const BatchBody = named("ReservePointsBatchRequest", { items: Type.Array(Item, { minItems: 1, maxItems: itemsMax }) });

function batchRoute(app: HttpApp, { authenticate, reservePointsBatch }: Deps): void {
  app.post(
    "/v1/points/reservations/batch",
    {
      bodyLimit: bodyMaxBytes,
      ...withAmounts(authenticate, {
        operationId: "reservePointsBatch",
        summary: "Make many reservations",
        tags: ["Reservations"],
        description:
          "Reserves up to 1,000 grants. Each item has its own key and is accepted or refused on its own; results are in input order. A key means the " +
          "same as on the routes for one reservation.",
        body: BatchBody,
        response: { 200: batchResults(NewReservationView, "ReservationBatchResult") },
      }),
    },
    async (request, reply) => {
      // All items are parsed before the first is reserved, so an invalid item refuses the whole request.
      const reservations = request.body.items.map((item, index) => toBatchItem(item, index, request));
      return sendBatch(request, reply, reservePointsBatch(reservations));
    },
  );
}

function toBatchItem(item: Static<typeof Item>, index: number, request: Pick<Request, "caller">): Reservation {
  const { idempotency_key, ...body } = item;
  const key = { scope: keyScope(request, "RESERVE"), key: idempotency_key, requestHash: digestJson(body) };
  return { key, ...toReservation(body, `body.items[${index}]`) };
}

const ReservationParams = Type.Object({ reservation_id: Uuid });

function getRoute(app: HttpApp, { authenticate, db }: Deps): void {
  app.get(
    "/v1/points/reservations/:reservation_id",
    guarded(authenticate, readers, {
      operationId: "getReservation",
      summary: "Get a reservation",
      tags: ["Reservations"],
      description: "Returns a reservation, with its status.",
      params: ReservationParams,
      refusals: [reservationNotFound],
      response: { 200: ReservationView },
    }),
    async ({ params: { reservation_id } }) => {
      const reservation = await selectReservation(db, reservation_id);
      if (!reservation) throw reservationNotFound(`There is no reservation ${reservation_id}.`);
      return reservation;
    },
  );
}

const CancelledReservation = named("CancelledReservation", { id: Uuid, status: Type.Literal("CANCELLED") });

function cancelRoute(app: HttpApp, { authenticate, cancelReservation }: Deps): void {
  app.delete(
    "/v1/points/reservations/:reservation_id",
    guarded(authenticate, writers, {
      operationId: "cancelReservation",
      summary: "Cancel a reservation",
      tags: ["Reservations"],
      description: "Only a PENDING reservation can be cancelled.",
      headers: IdempotencyHeaders,
      params: ReservationParams,
      refusals: [reservationNotFound, reservationNotPending],
      response: {
        200: CancelledReservation,
      },
    }),
    async (request, reply) =>
      sendResponse(reply, await cancelReservation(commandKey(request, "CANCEL"), request.params.reservation_id)),
  );
}
