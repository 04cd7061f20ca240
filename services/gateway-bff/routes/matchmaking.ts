/**
 * Matchmaking for players, under the same paths as at the service. What becomes of a ticket need not be asked for: a match,
 * and an end without one, come with the inbox (`GET /v1/inbox/stream`) the moment that they are told.
 */
import { Type } from "typebox";
import type { Forwarded } from "./forward.ts";
import { AsTheServiceSays, Mode, TicketId } from "./schemas.ts";

const queues = "/v1/matchmaking/queues";
const tickets = "/v1/matchmaking/tickets";

/** Whose a ticket is, the service knows: everybody else hears that there is none. */
const ours = { upstream: "matchmaking", rule: { user: "any" }, answers: AsTheServiceSays } as const;
const oneQueue = { ...ours, params: Type.Object({ mode: Mode }) };
const oneTicket = { ...ours, params: Type.Object({ ticket_id: TicketId }), upstreamPath: `${tickets}/:ticket_id` };

export const matchmakingTable: readonly Forwarded[] = [
  {
    ...ours,
    method: "GET",
    path: queues,
    upstreamPath: queues,
    operationId: "listQueues",
    summary: "The modes, and what each asks of a ticket",
  },
  {
    ...oneQueue,
    method: "GET",
    path: `${queues}/:mode/stats`,
    upstreamPath: `${queues}/:mode/stats`,
    operationId: "showQueueStats",
    summary: "Who waits, and how long it took others; at most a second old",
  },
  {
    ...oneQueue,
    method: "POST",
    path: `${queues}/:mode/tickets`,
    upstreamPath: `${queues}/:mode/tickets`,
    operationId: "joinQueue",
    summary: "Waits for a match; 200 with the open ticket where the player waits already with the same wish",
    idempotent: true,
    creates: true,
    body: Type.Object({
      party_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
      attributes: Type.Optional(
        Type.Unsafe<object>({
          type: "object",
          maxProperties: 32,
          additionalProperties: true,
          description: "What the mode asks for; matchmaking says what it may be.",
          examples: [{ skill: 1500 }],
        }),
      ),
    }),
  },
  {
    ...oneTicket,
    method: "GET",
    path: `${tickets}/:ticket_id`,
    operationId: "showTicket",
    summary: "A ticket of the player; MATCHED with the match, the peers and where to play",
  },
  {
    ...oneTicket,
    method: "DELETE",
    path: `${tickets}/:ticket_id`,
    operationId: "cancelTicket",
    summary: "Takes a ticket back; again, it answers the same; 409 once it is matched",
    repeatable: true,
  },
  {
    ...oneTicket,
    method: "POST",
    path: `${tickets}/:ticket_id([^:/]+)::heartbeat`,
    upstreamPath: `${tickets}/:ticket_id:heartbeat`,
    operationId: "heartbeatTicket",
    summary: "Says that the client is still there, where the mode asks for it; answers with the ticket as it is",
    repeatable: true,
  },
];
