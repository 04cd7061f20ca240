/** What Redis keeps, read: records of tickets, and the ends in the stream. What cannot be read is told, never guessed. */
import type { Attributes, ExpiryReason, MatchTerms, OpenTicket, TicketEnd } from "../../tickets.ts";
import type { Found, JoinWish } from "../index.ts";

/** As the scripts write it. Times are milliseconds of Redis' clock but for `joined`, which is microseconds. */
interface TicketRecord {
  readonly id: string;
  readonly user: string;
  readonly party: number;
  /** JSON in JSON: the scripts pass it on as it is. */
  readonly attributes: string;
  readonly avoid: string;
  readonly joined: string;
  readonly expires: number;
  readonly alive: number;
  readonly state: Found["status"];
}

/** What a client wants, for the script to add ids and times to. */
export const recordOf = ({ userId, partySize, attributes, avoid }: JoinWish): string =>
  JSON.stringify({
    user: userId,
    party: partySize,
    attributes: JSON.stringify(attributes),
    avoid: JSON.stringify(avoid),
  });

/** The ticket and its state, or why it is none. */
export type Read = Found | { readonly why: string };

export function readRecord(mode: string, text: string): Read {
  try {
    const record: TicketRecord = JSON.parse(text);
    const ticket = ticketOf(mode, record);
    const { partySize, joinedAt, expiresAt, aliveUntil } = ticket;
    const isWhole = typeof ticket.ticketId === "string" && typeof ticket.userId === "string" && partySize >= 1;
    const hasTimes = [joinedAt, expiresAt, aliveUntil].every(Number.isSafeInteger);
    if (!isWhole || !hasTimes) return { why: "its record is not that of a ticket" };
    if (!isObject(ticket.attributes)) return { why: "its attributes are not an object in JSON" };
    return { ticket, status: record.state };
  } catch (error) {
    return { why: text === "" ? "there is no record of it" : `its record cannot be read: ${error}` };
  }
}

function ticketOf(mode: string, record: TicketRecord): OpenTicket {
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

/** An entry of a stream as Redis answers it: its id, then names and values by turns. */
export type RawEntry = readonly [string, readonly string[]];

/** One end in the stream. */
export interface Entry {
  readonly id: string;
  readonly end: TicketEnd;
  /** All tickets that it is about. */
  readonly ticketIds: readonly string[];
}

/** An entry that cannot be read is an end all the same: what it is about is set aside, and it blocks none behind it. */
export function entryOf(mode: string, [id, words]: RawEntry): Entry {
  const all = (name: string) => words.filter((_, place) => place % 2 === 1 && words[place - 1] === name);
  const ticketIds = all("id");
  try {
    return { id, ticketIds, end: endOf(mode, all) };
  } catch (error) {
    return { id, ticketIds, end: unreadable({ mode, id, words }, error) };
  }
}

export function unreadable({ mode, id, words }: { mode: string; id: string; words: unknown }, why: unknown): TicketEnd {
  const endedAt = Number(id.split("-")[0]);
  const raw = JSON.stringify(words);
  return { kind: "damaged", mode, ticketId: `${mode} end ${id}`, raw, why: `it cannot be recorded: ${why}`, endedAt };
}

function endOf(mode: string, all: (name: string) => readonly string[]): TicketEnd {
  const one = (name: string) => all(name)[0] ?? "";
  const [kind, endedAt] = [one("kind"), Number(one("at"))];
  if (kind === "damaged") return { kind, mode, ticketId: one("id"), raw: one("raw"), why: one("why"), endedAt };
  const tickets = all("ticket").map((text) => ticketIn(mode, text));
  const [ticket] = tickets;
  if (!ticket || !Number.isSafeInteger(endedAt)) throw new Error("it names no ticket or no time");
  if (kind === "cancelled") return { kind, ticket, endedAt };
  if (kind === "expired") return { kind, ticket, reason: one("reason") as ExpiryReason, endedAt };
  if (kind !== "match") throw new Error(`${kind} is no kind of end`);
  const [teams, region] = [all("team").map(Number), one("region")];
  const seats = tickets.map((each, place) => ({ ticket: each, team: teams[place] ?? 0 }));
  const terms: MatchTerms = JSON.parse(one("terms"));
  const where = region === "" ? {} : { region };
  return { kind, match: { ...terms, matchId: one("match"), mode, ...where, matchedAt: endedAt, seats } };
}

function ticketIn(mode: string, text: string): OpenTicket {
  const read = readRecord(mode, text);
  if ("why" in read) throw new Error(read.why);
  return read.ticket;
}
