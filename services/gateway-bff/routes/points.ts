/** A player's points, read-only. Amounts are passed on to the last digit. Back-ends with API keys call points directly. */
import { oneOf } from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody } from "./schemas.ts";

const time = (description: string) => Type.String({ format: "date-time", description });
const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const reads = [
  {
    path: "/v1/points/users/:user_id/balance",
    operationId: "getBalance",
    tag: "Points",
    summary: "Get a balance",
    description: "Returns the balance of the player, now or at a past time.",
    query: Type.Object({ at: Type.Optional(time("Return the balance at this time.")) }),
  },
  {
    path: "/v1/points/users/:user_id/statement",
    operationId: "listStatement",
    tag: "Points",
    summary: "List transactions",
    description: "Returns the statement of the player, newest first. Each transaction has the balance after it.",
    query: Type.Object({
      kind: Type.Optional(
        oneOf(["ADD", "GRANT", "SUB", "EXPIRE", "HOLD", "RELEASE", "CAPTURE", "REFUND"], {
          description: "Only transactions of this kind.",
        }),
      ),
      source: text(64, "The kind of object that caused the change."),
      source_id: text(128, "The ID of that object."),
      from: Type.Optional(time("Posted at this time or later.")),
      to: Type.Optional(time("Posted before this time.")),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/expiring",
    operationId: "listExpiring",
    tag: "Points",
    summary: "List expiring points",
    description: "Returns the lots of the player that expire soon, soonest first.",
    query: Type.Object({
      within_days: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 3_650, description: "How far to look ahead. Default: 30." }),
      ),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/reservations",
    operationId: "listReservations",
    tag: "Reservations",
    summary: "List reservations",
    description: "Returns all reservations of the player, newest first.",
    query: Type.Object({
      status: Type.Optional(
        oneOf(["PENDING", "PROCESSING", "DONE", "FAILED", "CANCELLED"], {
          description: "Only reservations in this status.",
        }),
      ),
      ...PageQuery,
    }),
  },
  {
    path: "/users/:user_id/reserved-points",
    operationId: "listReservedPoints",
    tag: "Reservations",
    summary: "List reserved points",
    description: "Returns the reservations of the player that are not granted yet, newest first, and their sum.",
    query: Type.Object(PageQuery),
  },
];

export const pointsRoutes: readonly ForwardedRoute[] = reads.map((read) => ({
  ...read,
  method: "GET",
  upstream: "points",
  upstreamPath: read.path,
  rule: { user: "own", staff: "VIEWER" },
  response: PassThroughBody,
}));
