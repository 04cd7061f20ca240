/** Modes, ticket IDs, and the body of a join. */
import { Type } from "typebox";
import { named } from "./named.ts";

/** Mode names are safe in a path, a Redis key and a file name. */
export const modePattern = "[a-z0-9][a-z0-9_-]{0,31}";
export const ticketIdPattern = `${modePattern}\\.[A-Za-z0-9_-]{28}`;

export const Mode = Type.String({
  maxLength: 32,
  pattern: `^${modePattern}$`,
  description: "A mode that `GET /v1/matchmaking/queues` lists.",
  examples: ["duel"],
});

export const TicketId = Type.String({
  maxLength: 61,
  pattern: `^${ticketIdPattern}$`,
  examples: ["duel.tZ0cWTr2w8wVnQ5bYxk1mO7PqLsd"],
});

/** Fewer than in other lists: a ticket names up to 63 other players and has attributes of up to 4 kB. */
export const TicketLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 50, description: "Tickets per page at most; the default is 20." }),
);

/** Attributes of the client, under names that the rules may require. */
export type Attributes = Readonly<Record<string, AttributeValue>>;
export type AttributeValue =
  | string
  | number
  | boolean
  | readonly string[]
  /** For instance milliseconds by region. */
  | Readonly<Record<string, number>>;

const text = { type: "string", maxLength: 128 };

/** Names that the rules may use, and the five kinds of values that they know. */
export const TicketAttributes = Type.Unsafe<Attributes>({
  title: "TicketAttributes",
  type: "object",
  maxProperties: 32,
  patternProperties: {
    "^[a-z][a-z0-9_]{0,63}$": {
      anyOf: [
        text,
        { type: "number" },
        { type: "boolean" },
        { type: "array", maxItems: 16, items: text },
        {
          type: "object",
          maxProperties: 32,
          patternProperties: { "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": { type: "number" } },
          additionalProperties: false,
        },
      ],
    },
  },
  additionalProperties: false,
  description:
    "Properties of the player or party: strings, numbers, booleans, lists of strings, or numbers by name; at most 4 kB. " +
    "`GET /v1/matchmaking/queues` lists the attributes that a mode requires.",
  examples: [{ skill: 1500 }],
});

export const PartySize = Type.Integer({
  minimum: 1,
  maximum: 64,
  description: "Players on the ticket; they stay together.",
});

export const JoinBody = named("JoinQueueRequest", {
  party_size: Type.Optional(PartySize),
  attributes: Type.Optional(TicketAttributes),
});

/** The generated players of a simulation. Its bounds keep it within seconds of CPU. */
export const SimulationQuery = {
  players: Type.Optional(
    Type.Integer({ minimum: 2, maximum: 10_000, description: "Players that join; the default is 2,000." }),
  ),
  per_minute: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 60_000, description: "Players per minute, on average; the default is 1,200." }),
  ),
  seed: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 4_294_967_295, description: "The same seed makes the same players." }),
  ),
  skill_mean: Type.Optional(Type.Integer({ minimum: -1e9, maximum: 1e9, description: "The default is 1,500." })),
  skill_deviation: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e9, description: "The default is 300." })),
};
