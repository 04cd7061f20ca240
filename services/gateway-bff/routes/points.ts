/**
 * A player's points, read, under the same paths as at the service: whoever gives and takes points is a back-end with a key,
 * and comes to the service itself. Amounts go through as the service wrote them, to the last digit.
 */
import { PageQuery } from "@todoke/http";
import { type TObject, Type } from "typebox";
import type { Forwarded } from "./forward.ts";
import { AsTheServiceSays, Time } from "./schemas.ts";

const oneOf = (...names: string[]) => Type.Union(names.map((name) => Type.Literal(name)));
const word = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }));

interface Read {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly query: TObject;
}

const reads: readonly Read[] = [
  {
    path: "/v1/points/users/:user_id/balance",
    operationId: "showBalance",
    summary: "What the player has, what holds have set aside and what is to come; or what it was at a time",
    query: Type.Object({ at: Type.Optional(Time) }),
  },
  {
    path: "/v1/points/users/:user_id/statement",
    operationId: "listStatement",
    summary: "Every change of the player's points with the balance after it, newest first",
    query: Type.Object({
      kind: Type.Optional(oneOf("ADD", "GRANT", "SUB", "EXPIRE", "HOLD", "RELEASE", "CAPTURE", "REFUND")),
      source: word(64),
      source_id: word(128),
      from: Type.Optional(Time),
      to: Type.Optional(Time),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/expiring",
    operationId: "listExpiring",
    summary: "What of the player's points runs out within so many days, soonest first",
    query: Type.Object({
      within_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_650, description: "30 if not given." })),
      ...PageQuery,
    }),
  },
  {
    path: "/v1/points/users/:user_id/reservations",
    operationId: "listReservations",
    summary: "All that was ever reserved for the player, newest first",
    query: Type.Object({
      status: Type.Optional(oneOf("PENDING", "PROCESSING", "DONE", "FAILED", "CANCELLED")),
      ...PageQuery,
    }),
  },
  {
    path: "/users/:user_id/reserved-points",
    operationId: "listReservedPoints",
    summary: "What is reserved for the player and not granted yet, newest first",
    query: Type.Object(PageQuery),
  },
];

export const pointsTable: readonly Forwarded[] = reads.map((read) => ({
  ...read,
  method: "GET",
  upstream: "points",
  upstreamPath: read.path,
  rule: { user: "own" },
  answers: AsTheServiceSays,
}));
