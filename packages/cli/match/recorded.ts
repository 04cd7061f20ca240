/**
 * Tickets that waited in earnest, as `todoke match export` wrote them: one JSON object in a line, in any order.
 *
 * They come when they came. Who left without a match leaves after the same time here, if they still wait then; how long
 * the others would have waited is what the simulation is to find out.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { CommandFailed, Misconfigured } from "../faults.ts";
import type { Arrival } from "./arrivals.ts";

interface RecordedTicket {
  readonly user_id: string;
  readonly party_size: number;
  readonly attributes: Arrival["attributes"];
  readonly joined_at: string;
  readonly ended_at?: string;
  readonly status?: "MATCHED" | "CANCELLED" | "EXPIRED";
  readonly reason?: string | null;
}

const ticketsMax = 1_000_000;
const lineMax = 16_384;
const faultsMax = 20;

export async function recordedArrivals(path: string, heartbeatMs = 0): Promise<readonly Arrival[]> {
  const tickets: { readonly joinedAt: number; readonly ticket: RecordedTicket }[] = [];
  const faults: string[] = [];
  let line = 0;
  try {
    for await (const text of createInterface({ input: createReadStream(path) })) {
      line++;
      if (text.trim() === "") continue;
      const ticket = ticketIn(text);
      if (typeof ticket === "string") faults.push(`${path}:${line}: ${ticket}`);
      else tickets.push({ joinedAt: Date.parse(ticket.joined_at), ticket });
      if (faults.length >= faultsMax) break;
      if (tickets.length > ticketsMax) throw new CommandFailed(`${path} has more than ${ticketsMax} tickets.`);
    }
  } catch (error) {
    if (error instanceof Error && "code" in error) throw new CommandFailed(`${path} cannot be read: ${error.message}`);
    throw error;
  }
  if (faults.length > 0) throw new Misconfigured(faults);
  tickets.sort((a, b) => a.joinedAt - b.joinedAt);
  const start = tickets[0]?.joinedAt ?? 0;
  return tickets.map(({ joinedAt, ticket }) => arrivalOf(ticket, { atMs: joinedAt - start, joinedAt, heartbeatMs }));
}

interface Come {
  readonly atMs: number;
  readonly joinedAt: number;
  readonly heartbeatMs: number;
}

function arrivalOf(ticket: RecordedTicket, { atMs, joinedAt, heartbeatMs }: Come): Arrival {
  const { user_id, party_size, attributes, ended_at, status, reason } = ticket;
  const waitedMs = ended_at === undefined ? 0 : Math.max(0, Date.parse(ended_at) - joinedAt);
  return {
    atMs,
    userId: user_id,
    partySize: party_size,
    attributes,
    ...(status === "CANCELLED" && { cancelsAfterMs: waitedMs }),
    ...(status === "EXPIRED" && reason === "heartbeat" && { silentAfterMs: Math.max(0, waitedMs - heartbeatMs) }),
  };
}

/** What a line says, or what is wrong with it. */
function ticketIn(text: string): RecordedTicket | string {
  if (text.length > lineMax) return `is longer than ${lineMax} characters`;
  const value = parsed(text);
  if (typeof value !== "object" || value === null) return "should be a JSON object: a ticket";
  const { user_id, party_size = 1, attributes = {}, joined_at, ended_at } = value as Record<string, unknown>;
  if (typeof user_id !== "string" || user_id === "") return "lacks user_id, a text";
  if (!Number.isInteger(party_size) || Number(party_size) < 1) return "party_size should be a whole number from 1 on";
  if (typeof attributes !== "object" || attributes === null || Array.isArray(attributes))
    return "attributes should be an object";
  if (!isTime(joined_at)) return "lacks joined_at, a time as 2026-11-16T10:00:00Z";
  if (ended_at !== undefined && !isTime(ended_at)) return "ended_at should be a time as 2026-11-16T10:00:00Z";
  return { ...value, party_size, attributes } as RecordedTicket;
}

const isTime = (value: unknown): boolean => typeof value === "string" && !Number.isNaN(Date.parse(value));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
