/**
 * Matchmaking for players, under the same paths as at the service. A client need not poll a ticket: matches and expiries
 * arrive in the user inbox (`GET /v1/inbox/stream`).
 */
import { JoinBody, Mode, TicketId, TicketLimit } from "@todoke/contracts/api";
import { PageQuery } from "@todoke/http";
import { Type } from "typebox";
import type { ForwardedRoute } from "./forward.ts";
import { PassThroughBody } from "./schemas.ts";

const queues = "/v1/matchmaking/queues";
const tickets = "/v1/matchmaking/tickets";

/** The service checks the owner of a ticket; anybody else gets 404. */
const common = { upstream: "matchmaking", rule: { user: "any" }, response: PassThroughBody } as const;
const oneQueue = { ...common, params: Type.Object({ mode: Mode }) };
const oneTicket = {
  ...common,
  tag: "Tickets",
  params: Type.Object({ ticket_id: TicketId }),
  upstreamPath: `${tickets}/:ticket_id`,
} as const;

export const matchmakingRoutes: readonly ForwardedRoute[] = [
  {
    ...common,
    method: "GET",
    path: queues,
    upstreamPath: queues,
    operationId: "listQueues",
    tag: "Queues",
    summary: "List queues",
    description: "Returns the modes, and the attributes that each requires.",
  },
  {
    ...oneQueue,
    method: "GET",
    path: `${queues}/:mode/stats`,
    upstreamPath: `${queues}/:mode/stats`,
    operationId: "getQueueStats",
    tag: "Queues",
    summary: "Get the figures of a queue",
    description: "Returns the number of waiting tickets and recent waiting times, at most a second old.",
  },
  {
    ...oneQueue,
    method: "POST",
    path: `${queues}/:mode/tickets`,
    upstreamPath: `${queues}/:mode/tickets`,
    operationId: "joinQueue",
    tag: "Tickets",
    summary: "Join a queue",
    description:
      "Returns 201 with a new ticket, or 200 with the open ticket if the player waits with the same request already.",
    idempotent: true,
    creates: true,
    body: JoinBody,
  },
  {
    ...common,
    method: "GET",
    path: tickets,
    upstreamPath: tickets,
    operationId: "listTickets",
    tag: "Tickets",
    summary: "List tickets",
    description: "Returns the tickets of the player in all modes, open and ended ones, the last joined first.",
    query: Type.Object({ ...PageQuery, limit: TicketLimit }),
  },
  {
    ...oneTicket,
    method: "GET",
    path: `${tickets}/:ticket_id`,
    operationId: "getTicket",
    summary: "Get a ticket",
    description: "Returns a ticket of the player. A MATCHED ticket has the match, the other players and where to play.",
  },
  {
    ...oneTicket,
    method: "DELETE",
    path: `${tickets}/:ticket_id`,
    operationId: "cancelTicket",
    summary: "Cancel a ticket",
    description: "Repeating the call has no effect. If the ticket is matched already, the response is 409.",
    repeatable: true,
  },
  {
    ...oneTicket,
    method: "POST",
    path: `${tickets}/:ticket_id([^:/]+)::heartbeat`,
    upstreamPath: `${tickets}/:ticket_id:heartbeat`,
    operationId: "heartbeatTicket",
    summary: "Send a heartbeat",
    description: "Keeps a ticket alive, if its mode requires heartbeats. Returns the ticket.",
    repeatable: true,
  },
];
