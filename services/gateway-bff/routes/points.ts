/** A player's points, read-only. Amounts are passed on to the last digit. Back-ends with API keys call points directly. */
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody, Time } from "./schemas.ts";

const oneOf = (...names: string[]) => Type.Union(names.map((name) => Type.Literal(name)));
const text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }));

const reads = [
  {
    path: "/v1/points/users/:user_id/balance",
    operationId: "getBalance",
    summary: "Get the player's balance, now or at a time.",
    query: Type.Object({ at: Type.Optional(Time) }),
  },
  {
    path: "/v1/points/users/:user_id/statement",
    operationId: "listStatement",
    summary: "List the player's point transactions with the balance after each, newest first.",
    query: Type.Object({
      kind: Type.Optional(oneOf("ADD", "GRANT", "SUB", "EXPIRE", "HOLD", "RELEASE", "CAPTURE", "REFUND")),
      source: text(64),
      source_id: text(128),
      from: Type.Optional(Time),
      to: Type.Optional(Time),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/expiring",
    operationId: "listExpiring",
    summary: "List the player's points that expire within a number of days, soonest first.",
    query: Type.Object({
      within_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_650, description: "Default: 30." })),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/reservations",
    operationId: "listReservations",
    summary: "List all reservations of the player, newest first.",
    query: Type.Object({
      status: Type.Optional(oneOf("PENDING", "PROCESSING", "DONE", "FAILED", "CANCELLED")),
      ...PageQuery,
    }),
  },
  {
    path: "/users/:user_id/reserved-points",
    operationId: "listReservedPoints",
    summary: "List the player's reservations that are not granted yet, newest first.",
    query: Type.Object(PageQuery),
  },
];

export const pointsRoutes: readonly ForwardedRoute[] = reads.map((read) => ({
  ...read,
  method: "GET",
  upstream: "points",
  upstreamPath: read.path,
  rule: { user: "own" },
  response: PassThroughBody,
}));
