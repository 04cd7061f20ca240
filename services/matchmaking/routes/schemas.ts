/** The schemas of requests and responses. They are the contract. */
import { Mode, named, PartySize, TicketAttributes, TicketId } from "@todoke/contracts/api";
import { NextCursor } from "@todoke/http";
import { Type } from "typebox";

const UserId = Type.String({ minLength: 1, maxLength: 128, examples: ["u_1"] });

export const OneQueue = Type.Object({ mode: Mode });
export const QueueOfUser = Type.Object({ user_id: UserId, mode: Mode });
export const OneTicket = Type.Object({ ticket_id: TicketId });

const time = Type.String({ format: "date-time" });
const seconds = Type.Number({ minimum: 0 });
export const JoinedView = named("QueuedTicket", {
  ticket_id: TicketId,
  status: Type.Literal("QUEUED"),
  expires_at: Type.String({ format: "date-time", description: "When the ticket expires unless it is matched." }),
});

const status = Type.Union(
  [
    Type.Literal("QUEUED"),
    Type.Literal("MATCHED"),
    Type.Literal("CANCELLED"),
    Type.Literal("EXPIRED", { description: "`reason` tells why. To wait again, join again." }),
  ],
  { title: "TicketStatus" },
);

export const TicketView = named("Ticket", {
  ticket_id: TicketId,
  mode: Mode,
  status,
  party_size: Type.Optional(PartySize),
  attributes: Type.Optional(TicketAttributes),
  joined_at: Type.Optional(time),
  expires_at: Type.Optional(
    Type.String({ format: "date-time", description: "When the ticket expires unless it is matched." }),
  ),
  heartbeat_before: Type.Optional(
    Type.String({
      format: "date-time",
      description: "The ticket expires at this time unless a heartbeat arrives before.",
    }),
  ),
  estimated_wait_seconds: Type.Optional(
    Type.Number({ minimum: 0, description: "From the waits of the last hour; absent if there are none." }),
  ),
  match_id: Type.Optional(Type.String({ format: "uuid", description: "The match, if the ticket is MATCHED." })),
  matched_at: Type.Optional(time),
  team: Type.Optional(Type.Integer({ minimum: 1, description: "The team of the ticket, from 1." })),
  peers: Type.Optional(
    Type.Array(
      named("Peer", { user_id: Type.String(), team: Type.Integer({ minimum: 1 }), party_size: Type.Integer() }),
      { description: "The other tickets of the match." },
    ),
  ),
  session: Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: "object",
      additionalProperties: true,
      description: "Where to play: the session of the mode's rules, and the region if one was chosen.",
    }),
  ),
  ended_at: Type.Optional(
    Type.String({ format: "date-time", description: "When a ticket was cancelled, or expired." }),
  ),
  reason: Type.Optional(
    Type.String({
      description:
        "timeout, heartbeat (none arrived in time), replaced (the user has a newer ticket) or lost (the queue lost it).",
      examples: ["timeout"],
    }),
  ),
});

export const TicketPage = named("TicketPage", { tickets: Type.Array(TicketView), next_cursor: NextCursor });

export const QueueStatsView = named("QueueStats", {
  mode: Mode,
  waiting: Type.Integer({ minimum: 0, description: "Tickets that wait." }),
  oldest_wait_seconds: Type.Optional(
    Type.Number({ minimum: 0, description: "How long the oldest ticket has waited; absent if none waits." }),
  ),
  time_to_match_seconds: Type.Optional(
    Type.Object(
      { p50: seconds, p90: seconds, p99: seconds },
      { title: "WaitPercentiles", description: "Of tickets that were matched within the last hour." },
    ),
  ),
  estimated_wait_seconds: Type.Optional(
    Type.Number({ minimum: 0, description: "From the waits of the last hour; absent if there are none." }),
  ),
});

const QueueView = named("Queue", {
  mode: Mode,
  teams: Type.Integer({ description: "Teams in a match." }),
  team_size: Type.Integer({ description: "Players in a team." }),
  party_max: Type.Integer({ description: "The largest `party_size`." }),
  ticket_seconds: Type.Number({ description: "How long a ticket waits before it expires." }),
  heartbeat_seconds: Type.Optional(Type.Number({ description: "The longest time between two heartbeats." })),
  set_by_backend: Type.Optional(
    Type.Array(Type.String(), {
      description: "Attributes, and `party_size`, that only a back-end may set, by joining for the player.",
    }),
  ),
  attributes: Type.Array(
    named("RequiredAttribute", {
      name: Type.String(),
      is: Type.Union([
        Type.Literal("number"),
        Type.Literal("regions", { description: "A list of regions that the player accepts, best first." }),
        Type.Literal("latencies", { description: "Milliseconds by region." }),
      ]),
    }),
    { description: "Attributes that a ticket must have." },
  ),
});

export const QueuesView = named("QueueList", {
  queues: Type.Array(QueueView),
});
