/**
 * Many grants booked ahead in one call. It saves round trips and promises nothing about the whole: each has its own key, is
 * booked or refused by itself, and is answered in its place. A key means the same here as on the routes for one.
 */
import { batchResults, type HttpApp, ItemKey, requires, sendBatch } from "@todoke/http";
import { digestOf } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import type { Reservation } from "../reservations/index.ts";
import { type Request, scopeOf, takesAmounts, writers } from "./request.ts";
import { reservationOf } from "./reservations.ts";
import { BookedView, ReserveBody } from "./schemas.ts";

const itemsMax = 1_000;

/** A thousand of the longest, in UTF-8, are three quarters of this. */
const bodyMaxBytes = 2 * 1024 * 1024;

const Item = Type.Object({ idempotency_key: ItemKey, ...ReserveBody.properties });

export function batchRoute(app: HttpApp, { authenticate, reserve }: Deps): void {
  app.post(
    "/v1/points/reservations/batch",
    {
      ...takesAmounts(requires(authenticate, writers)),
      bodyLimit: bodyMaxBytes,
      schema: {
        operationId: "createReservations",
        summary: "Up to 1,000 grants booked ahead, each with its own key and its own result",
        body: Type.Object({ items: Type.Array(Item, { minItems: 1, maxItems: itemsMax }) }),
        response: { 200: batchResults(BookedView) },
      },
    },
    async (request, reply) => {
      // All are read before the first is booked: what is not valid is refused as a whole.
      const reservations = request.body.items.map((item, place) => bookingOf(item, place, request));
      return sendBatch(request, reply, reservations.map(reserve));
    },
  );
}

function bookingOf(item: Static<typeof Item>, place: number, request: Pick<Request, "caller">): Reservation {
  const { idempotency_key, ...body } = item;
  const key = { scope: scopeOf(request, "RESERVE"), key: idempotency_key, requestHash: digestOf(body) };
  return { key, ...reservationOf(body, `body.items[${place}]`) };
}
