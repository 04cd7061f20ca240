/** One ticket, for the user whose it is: look, take back, still there. Everybody else hears that there is none. */
import { type HttpApp, ProblemView, requires } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { playerOf } from "./request.ts";
import { OneTicket, TicketView } from "./schemas.ts";

const players = { user: "any" } as const;
const response = { 200: TicketView, 404: ProblemView };

export function ticketRoutes(app: HttpApp, deps: Deps): void {
  const { authenticate, showTicket, cancelTicket, heartbeatTicket } = deps;

  app.get(
    "/v1/matchmaking/tickets/:ticket_id",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "showTicket",
        summary: "A ticket of the caller; MATCHED with the match, the peers and where to play",
        params: OneTicket,
        response,
      },
    },
    async (request) => showTicket({ ticketId: request.params.ticket_id, userId: playerOf(request) }),
  );

  app.delete(
    "/v1/matchmaking/tickets/:ticket_id",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "cancelTicket",
        summary: "Takes a ticket back; again, it answers the same; 409 once it is matched",
        params: OneTicket,
        response: { ...response, 409: ProblemView },
      },
    },
    async (request) => cancelTicket({ ticketId: request.params.ticket_id, userId: playerOf(request) }),
  );

  app.post(
    // The pattern ends the id where the act begins; the router would take both for the name of one parameter otherwise.
    "/v1/matchmaking/tickets/:ticket_id([^/:]+)::heartbeat",
    {
      ...requires(authenticate, players),
      schema: {
        operationId: "heartbeatTicket",
        summary: "Says that the client is still there, where the mode asks for it; answers with the ticket as it is",
        params: OneTicket,
        response,
      },
    },
    async (request) => heartbeatTicket({ ticketId: request.params.ticket_id, userId: playerOf(request) }),
  );
}
