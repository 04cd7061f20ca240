/** The parts of a profile: the service that each comes from, and the fields that a client may pick. */
import { UserView } from "@todoke/contracts/api";
import { problems } from "@todoke/http";
import type { UpstreamName } from "../problems.ts";

export interface ProfileSubject {
  readonly userId: string;
  readonly ticketId: string | undefined;
}

export interface PartSource {
  readonly upstream: UpstreamName;
  readonly path: (subject: ProfileSubject) => string;
  /** The name under which the service has the same read for many users (shared-reads.ts). */
  readonly sharedAs?: (subject: ProfileSubject) => string | undefined;
  /** The fields of the service's response; a test compares them with its API document. */
  readonly fields: readonly string[];
}

const ticketPath = ({ ticketId = "current" }: ProfileSubject) =>
  `/v1/matchmaking/tickets/${encodeURIComponent(ticketId)}`;

/** A ticket by its ID is not the user's current one. */
const sharedTicket = ({ ticketId }: ProfileSubject) => (ticketId === undefined ? "current-tickets" : undefined);

export const sources = {
  account: {
    upstream: "account",
    path: ({ userId }) => `/users/${userId}`,
    sharedAs: () => "users",
    fields: Object.keys(UserView.properties),
  },
  entitlements: {
    upstream: "entitlement",
    path: ({ userId }) => `/v1/users/${userId}/entitlements`,
    sharedAs: () => "entitlements",
    fields: ["user_id", "entitlements", "next_cursor"],
  },
  points: {
    upstream: "points",
    path: ({ userId }) => `/v1/points/users/${userId}/balance`,
    sharedAs: () => "balances",
    fields: ["user_id", "balance", "held", "pending", "version", "as_of"],
  },
  matchmaking: {
    upstream: "matchmaking",
    path: ticketPath,
    sharedAs: sharedTicket,
    fields: [
      ...["ticket_id", "mode", "status", "party_size", "attributes", "joined_at", "expires_at", "heartbeat_before"],
      ...["estimated_wait_seconds", "match_id", "matched_at", "team", "peers", "session", "ended_at", "reason"],
    ],
  },
  /** The other players of the ticket's match, with their names. */
  players: { upstream: "matchmaking", path: ticketPath, sharedAs: sharedTicket, fields: ["players"] },
  queues: { upstream: "matchmaking", path: () => "/v1/matchmaking/queues", fields: ["queues"] },
  expiring: {
    upstream: "points",
    path: ({ userId }) => `/v1/points/users/${userId}/expiring?limit=5`,
    fields: ["user_id", "lots", "next_cursor"],
  },
  inbox: {
    upstream: "notification",
    path: ({ userId }) => `/v1/users/${userId}/inbox?limit=20`,
    fields: ["notifications", "last_event_id", "next_cursor"],
  },
} as const satisfies Record<string, PartSource>;

export type PartName = keyof typeof sources;
export const partNames = Object.keys(sources) as PartName[];

/** The parts to load, each with its fields; undefined: all of them. */
export type Selection = ReadonlyMap<PartName, ReadonlySet<string> | undefined>;

const defaultSelection: Selection = new Map(
  (["account", "entitlements", "points", "matchmaking"] as const).map((name) => [name, undefined]),
);

/** Parses `account.display_name,points`. A part that is named without a field is loaded whole. */
export function parseFields(text: string | undefined): Selection {
  if (text === undefined) return defaultSelection;
  const selection = new Map<PartName, Set<string> | undefined>();
  for (const name of text.split(",")) {
    const [part = "", ...rest] = name.split(".");
    const field = rest.length > 0 ? rest.join(".") : undefined;
    if (!isPartName(part)) throw unknownField(name, partNames);
    const fields: readonly string[] = sources[part].fields;
    if (field !== undefined && !fields.includes(field)) throw unknownField(name, fields);
    const isWhole = field === undefined || (selection.has(part) && selection.get(part) === undefined);
    selection.set(part, isWhole ? undefined : new Set(selection.get(part)).add(field));
  }
  return selection;
}

const isPartName = (name: string): name is PartName => Object.hasOwn(sources, name);

const unknownField = (name: string, known: readonly string[]) =>
  problems.invalidField("query.fields", `has ${name}, which does not exist; there are ${known.join(", ")}`);
