/** Routes of tickets. Only its owner sees a ticket; for other callers it does not exist. */

import { TicketLimit } from "@todoke/contracts/api";
import { guarded, type HttpApp, PageQuery, page, parseCursor, type SharedResult, shareReads } from "@todoke/http";
import { Problem } from "@todoke/kernel/problem";
import { type Static, Type } from "typebox";
import type { Deps } from "../deps.ts";
import { ticketLost, ticketMatched, ticketNotFound } from "../problems.ts";
import { callingUser } from "./request.ts";
import { OneTicket, TicketPage, TicketView } from "./schemas.ts";

const players = { user: "any" } as const;
const defaultLimit = 20;
const TicketsQuery = Type.Object({ ...PageQuery, limit: TicketLimit });
const ticketCursor = { parts: ["epochMicros", "text"] } as const;
const response = { 200: TicketView };

export function ticketRoutes(app: HttpApp, deps: Deps): void {
  const { authenticate, listTickets, getCurrentTicket, getTicket, cancelTicket, heartbeatTicket } = deps;

  async function listPage(userId: string, query: Static<typeof TicketsQuery>) {
    const [joinedAtMicros = "", ticketId = ""] = parseCursor(query, ticketCursor) ?? [];
    const before = query.cursor === undefined ? undefined : { joinedAtMicros, ticketId };
    const { rows, ...next } = await page(
      { limit: defaultLimit, ...query },
      { read: (limit) => listTickets({ userId, before, limit }), name: ({ position }) => position },
    );
    return { tickets: rows.map(({ view }) => view), ...next };
  }

  app.get(
    "/v1/matchmaking/tickets",
    guarded(authenticate, players, {
      operationId: "listTickets",
      summary: "List tickets",
      tags: ["Tickets"],
      description: "Returns the tickets of the caller in all modes, open and ended ones, the last joined first.",
      querystring: TicketsQuery,
      response: { 200: TicketPage },
    }),
    (request) => listPage(callingUser(request), request.query),
  );

  app.get(
    "/v1/admin/users/:user_id/tickets",
    guarded(
      authenticate,
      { staff: "VIEWER" },
      {
        operationId: "listUserTickets",
        summary: "List tickets of a user",
        tags: ["Tickets"],
        description: "Returns the tickets of a user in all modes, open and ended ones, the last joined first.",
        params: Type.Object({ user_id: Type.String({ minLength: 1, maxLength: 128 }) }),
        querystring: TicketsQuery,
        response: { 200: TicketPage },
      },
    ),
    (request) => listPage(request.params.user_id, request.query),
  );

  app.get(
    "/v1/matchmaking/tickets/current",
    guarded(authenticate, players, {
      operationId: "getCurrentTicket",
      summary: "Get the current ticket",
      tags: ["Tickets"],
      description:
        "Returns the open ticket of the caller, the last joined one if there are several; else the ticket of the latest match. " +
        "Without either, the response is 204.",
      refusals: [ticketNotFound],
      response: { 200: TicketView, 204: Type.Null() },
    }),
    async (request, reply) => (await getCurrentTicket(callingUser(request))) ?? reply.code(204).send(null),
  );

  shareReads(app, {
    authenticate,
    name: "current-tickets",
    operationId: "getCurrentTickets",
    summary: "Get the current tickets of many users",
    tag: "Tickets",
    view: TicketView,
    read: (userIds) => Promise.all(userIds.map((userId) => getCurrentTicket(userId).then(toShared, notShared))),
  });

  app.get(
    "/v1/matchmaking/tickets/:ticket_id",
    guarded(authenticate, players, {
      operationId: "getTicket",
      summary: "Get a ticket",
      tags: ["Tickets"],
      description:
        "Returns a ticket of the caller. A MATCHED ticket has the match, the other players and where to play. The call changes nothing: an expired ticket " +
        "is QUEUED until the service has ended it. If the queue has lost the ticket, the response is 404 `ticket-lost`.",
      params: OneTicket,
      refusals: [ticketLost, ticketNotFound],
      response,
    }),
    async (request) => getTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );

  app.delete(
    "/v1/matchmaking/tickets/:ticket_id",
    guarded(authenticate, players, {
      operationId: "cancelTicket",
      summary: "Cancel a ticket",
      tags: ["Tickets"],
      description:
        "Repeating the call returns the same response. If the ticket is matched already, the response is 409 " +
        "`ticket-matched`.",
      params: OneTicket,
      refusals: [ticketLost, ticketMatched, ticketNotFound],
      response,
    }),
    async (request) => cancelTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );

  app.post(
    // The pattern ends the ID before the colon; else the router takes both for the name of one parameter.
    "/v1/matchmaking/tickets/:ticket_id([^/:]+)::heartbeat",
    guarded(authenticate, players, {
      operationId: "heartbeatTicket",
      summary: "Send a heartbeat",
      tags: ["Tickets"],
      description:
        "Keeps a ticket alive. In a mode with heartbeats, a ticket expires unless a heartbeat arrives before `heartbeat_before`. Returns the " +
        "ticket; one that has ended is returned as it ended.",
      params: OneTicket,
      refusals: [ticketLost, ticketNotFound],
      response,
    }),
    async (request) => heartbeatTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );
}

const toShared = (ticket: unknown): SharedResult => (ticket ? { status: 200, value: ticket } : { status: 204 });

/** A refusal concerns one user, whose own call gets it. */
function notShared(error: unknown): SharedResult {
  if (error instanceof Problem && error.status < 500) return null;
  throw error;
}
