/** Routes of one ticket. Only its owner sees it; for other callers it does not exist. */
import { type HttpApp, ProblemView, requires } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { callingUser } from "./request.ts";
import { OneTicket, TicketView } from "./schemas.ts";

const players = { user: "any" } as const;
const response = { 200: TicketView, 404: ProblemView };

export function ticketRoutes(app: HttpApp, deps: Deps): void {
  const { authenticate, getTicket, cancelTicket, heartbeatTicket } = deps;

  app.get(
    "/v1/matchmaking/tickets/:ticket_id",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "getTicket",
        summary: "Get a ticket",
        tags: ["Tickets"],
        description:
          "Returns a ticket of the caller. A MATCHED ticket has the match, the other players and where to play. The call changes nothing: an expired ticket " +
          "is QUEUED until the service has ended it. If the queue has lost the ticket, the response is 404 `ticket-lost`.",
        params: OneTicket,
        response,
      },
    },
    async (request) => getTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );

  app.delete(
    "/v1/matchmaking/tickets/:ticket_id",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "cancelTicket",
        summary: "Cancel a ticket",
        tags: ["Tickets"],
        description:
          "Repeating the call returns the same response. If the ticket is matched already, the response is 409 " +
          "`ticket-matched`.",
        params: OneTicket,
        response: { ...response, 409: ProblemView },
      },
    },
    async (request) => cancelTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );

  app.post(
    // The pattern ends the ID before the colon; else the router takes both for the name of one parameter.
    "/v1/matchmaking/tickets/:ticket_id([^/:]+)::heartbeat",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "heartbeatTicket",
        summary: "Send a heartbeat",
        tags: ["Tickets"],
        description:
          "Keeps a ticket alive. In a mode with heartbeats, a ticket expires unless a heartbeat arrives before `heartbeat_before`. Returns the " +
          "ticket; one that has ended is returned as it ended.",
        params: OneTicket,
        response,
      },
    },
    async (request) => heartbeatTicket({ ticketId: request.params.ticket_id, userId: callingUser(request) }),
  );
}
