/**
 * Many grants booked ahead in one call. It saves round trips and promises nothing about the whole: each has its own key, is
 * booked or refused by itself, and is answered in its place. A key means the same here as on the routes for one.
 */
import { type HttpApp, ProblemView, problemOfFailure, requires, sendAnswer } from "@todoke/http";
import { type Answer, digestOf } from "@todoke/kernel/idempotency";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import type { Reservation } from "../reservations/index.ts";
import { type Request, scopeOf, takesAmounts, writers } from "./request.ts";
import { reservationOf } from "./reservations.ts";
import { BookedView, ReserveBody } from "./schemas.ts";

const itemsMax = 1_000;

/** A thousand of the longest, in UTF-8, are three quarters of this. */
const bodyMaxBytes = 2 * 1024 * 1024;

const Item = Type.Object({
  idempotency_key: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: "^[\\x21-\\x7e]*$",
    description: "As in the header Idempotency-Key: visible ASCII.",
  }),
  ...ReserveBody.properties,
});

const Result = Type.Object({
  status: Type.Integer({ description: "What the route for one would have answered." }),
  body: Type.Union([BookedView, ProblemView]),
  replayed: Type.Optional(Type.Literal(true, { description: "It had been booked before; this is that answer." })),
});

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
        response: { 200: Type.Object({ results: Type.Array(Result) }) },
      },
    },
    async (request, reply) => {
      // All are read before the first is booked: what is not valid is refused as a whole.
      const reservations = request.body.items.map((item, place) => bookingOf(item, place, request));
      const ends = await Promise.allSettled(reservations.map(reserve));
      const results = ends.map((end) =>
        end.status === "fulfilled" ? resultOf(end.value) : refusalOf(end.reason, request),
      );
      const body = Buffer.from(`{"results":[${results.join(",")}]}`);
      return sendAnswer(reply, { status: 200, contentType: "application/json; charset=utf-8", body, replayed: false });
    },
  );
}

function bookingOf(item: Static<typeof Item>, place: number, request: Pick<Request, "caller">): Reservation {
  const { idempotency_key, ...body } = item;
  const key = { scope: scopeOf(request, "RESERVE"), key: idempotency_key, requestHash: digestOf(body) };
  return { key, ...reservationOf(body, `body.items[${place}]`) };
}

/** The bytes as they are kept. */
const resultOf = ({ status, body, replayed }: Answer) =>
  `{"status":${status},"body":${body.toString()}${replayed ? ',"replayed":true' : ""}}`;

function refusalOf(error: unknown, request: Pick<Request, "id" | "log">): string {
  const problem = problemOfFailure(error);
  if (problem.status >= 500) request.log.error({ err: error, code: problem.code }, "failed");
  return JSON.stringify({ status: problem.status, body: { ...problem.toJSON(), instance: request.id } });
}
