/** Parses what Redis stores: ticket records, and the ends in the stream. Unreadable data is reported as damaged. */

import type { FoundTicket, TicketRequest } from "../index.ts";
import type { Attributes, ExpiryReason, MatchTerms, OpenTicket, TicketEnd } from "../ticket.ts";

/** As the scripts write it. Times are milliseconds of Redis' clock, except `joined`, which is microseconds. */
interface TicketRecord {
  readonly id: string;
  readonly user: string;
  readonly party: number;
  /** A JSON string: the scripts do not change it. */
  readonly attributes: string;
  readonly avoid: string;
  readonly joined: string;
  readonly expires: number;
  readonly alive: number;
  readonly state: FoundTicket["status"];
}

/** The script adds ID and times. */
export const formatRecord = ({ userId, partySize, attributes, avoid }: TicketRequest): string =>
  JSON.stringify({
    user: userId,
    party: partySize,
    attributes: JSON.stringify(attributes),
    avoid: JSON.stringify(avoid),
  });

/** The ticket and its state, or why it is not a ticket. */
export type ParsedRecord = FoundTicket | { readonly why: string };

export function parseRecord(mode: string, text: string): ParsedRecord {
  try {
    const record: TicketRecord = JSON.parse(text);
    const ticket = toTicket(mode, record);
    const { partySize, joinedAt, expiresAt, aliveUntil } = ticket;
    const isWhole = typeof ticket.ticketId === "string" && typeof ticket.userId === "string" && partySize >= 1;
    const hasTimes = [joinedAt, expiresAt, aliveUntil].every(Number.isSafeInteger);
    if (!isWhole || !hasTimes) return { why: "its record is not a ticket" };
    if (!isObject(ticket.attributes)) return { why: "its attributes are not a JSON object" };
    return { ticket, status: record.state };
  } catch (error) {
    return { why: text === "" ? "it has no record" : `its record cannot be parsed: ${error}` };
  }
}

function toTicket(mode: string, record: TicketRecord): OpenTicket {
  return {
    ticketId: record.id,
    mode,
    userId: record.user,
    partySize: record.party,
    attributes: JSON.parse(record.attributes) as Attributes,
    avoid: JSON.parse(record.avoid) as readonly string[],
    joinedAt: Math.floor(Number(record.joined) / 1_000),
    expiresAt: record.expires,
    aliveUntil: record.alive,
  };
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A stream entry as Redis returns it: its ID, then field names and values in turn. */
export type RawEntry = readonly [string, readonly string[]];

export interface EndEntry {
  readonly id: string;
  readonly end: TicketEnd;
  /** All tickets of the end. */
  readonly ticketIds: readonly string[];
}

/** An unreadable entry becomes a damaged end, so that it is quarantined and blocks no other entry. */
export function parseEntry(mode: string, [id, fields]: RawEntry): EndEntry {
  const all = (name: string) => fields.filter((_, index) => index % 2 === 1 && fields[index - 1] === name);
  const ticketIds = all("id");
  try {
    return { id, ticketIds, end: parseEnd(mode, all) };
  } catch (error) {
    return { id, ticketIds, end: damagedEntry({ mode, id, content: fields }, error) };
  }
}

interface UnrecordableEntry {
  readonly mode: string;
  readonly id: string;
  readonly content: unknown;
}

export function damagedEntry({ mode, id, content }: UnrecordableEntry, error: unknown): TicketEnd {
  const endedAt = Number(id.split("-")[0]);
  const raw = JSON.stringify(content);
  return { kind: "damaged", mode, ticketId: `${mode} end ${id}`, raw, why: `it cannot be recorded: ${error}`, endedAt };
}

function parseEnd(mode: string, all: (name: string) => readonly string[]): TicketEnd {
  const one = (name: string) => all(name)[0] ?? "";
  const [kind, endedAt] = [one("kind"), Number(one("at"))];
  if (kind === "damaged") return { kind, mode, ticketId: one("id"), raw: one("raw"), why: one("why"), endedAt };
  const tickets = all("ticket").map((text) => parseTicket(mode, text));
  const [ticket] = tickets;
  if (!ticket || !Number.isSafeInteger(endedAt)) throw new Error("it has no ticket or no time");
  if (kind === "cancelled") return { kind, ticket, endedAt };
  if (kind === "expired") return { kind, ticket, reason: one("reason") as ExpiryReason, endedAt };
  if (kind !== "match") throw new Error(`${kind} is not a kind of end`);
  const [teams, region] = [all("team").map(Number), one("region")];
  const seats = tickets.map((each, index) => ({ ticket: each, team: teams[index] ?? 0 }));
  const terms: MatchTerms = JSON.parse(one("terms"));
  const where = region === "" ? {} : { region };
  return { kind, match: { ...terms, matchId: one("match"), mode, ...where, matchedAt: endedAt, seats } };
}

function parseTicket(mode: string, text: string): OpenTicket {
  const parsed = parseRecord(mode, text);
  if ("why" in parsed) throw new Error(parsed.why);
  return parsed.ticket;
}
