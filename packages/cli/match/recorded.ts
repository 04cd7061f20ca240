/**
 * Reads tickets that `todoke match export` wrote: one JSON object per line, in any order.
 *
 * They arrive at their recorded times. A ticket that was cancelled or stopped its heartbeats does the same after the same
 * time, unless the simulation matches it first.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Arrival } from "@todoke/matchmaking/simulator";
import { CommandFailed, SettingsError } from "../errors.ts";

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
const errorsMax = 20;

export async function readRecordedArrivals(path: string, heartbeatMs = 0): Promise<readonly Arrival[]> {
  const tickets: { readonly joinedAt: number; readonly ticket: RecordedTicket }[] = [];
  const errors: string[] = [];
  let line = 0;
  try {
    for await (const text of createInterface({ input: createReadStream(path) })) {
      line++;
      if (text.trim() === "") continue;
      const ticket = parseTicket(text);
      if (typeof ticket === "string") errors.push(`${path}:${line}: ${ticket}`);
      else tickets.push({ joinedAt: Date.parse(ticket.joined_at), ticket });
      if (errors.length >= errorsMax) break;
      if (tickets.length > ticketsMax) throw new CommandFailed(`${path} has more than ${ticketsMax} tickets.`);
    }
  } catch (error) {
    if (error instanceof Error && "code" in error) throw new CommandFailed(`${path} cannot be read: ${error.message}`);
    throw error;
  }
  if (errors.length > 0) throw new SettingsError(errors);
  tickets.sort((a, b) => a.joinedAt - b.joinedAt);
  const start = tickets[0]?.joinedAt ?? 0;
  return tickets.map(({ joinedAt, ticket }) => toArrival(ticket, { atMs: joinedAt - start, joinedAt, heartbeatMs }));
}

interface ArrivalTimes {
  readonly atMs: number;
  readonly joinedAt: number;
  readonly heartbeatMs: number;
}

function toArrival(ticket: RecordedTicket, { atMs, joinedAt, heartbeatMs }: ArrivalTimes): Arrival {
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

/** The ticket of a line, or the error in it. */
function parseTicket(text: string): RecordedTicket | string {
  if (text.length > lineMax) return `is longer than ${lineMax} characters`;
  const value = parseJson(text);
  if (typeof value !== "object" || value === null) return "should be a JSON object (a ticket)";
  const { user_id, party_size = 1, attributes = {}, joined_at, ended_at } = value as Record<string, unknown>;
  if (typeof user_id !== "string" || user_id === "") return "user_id is missing or not a string";
  if (!Number.isInteger(party_size) || Number(party_size) < 1) return "party_size should be a positive integer";
  if (typeof attributes !== "object" || attributes === null || Array.isArray(attributes))
    return "attributes should be an object";
  if (!isTime(joined_at)) return "joined_at should be a time as 2026-11-16T10:00:00Z";
  if (ended_at !== undefined && !isTime(ended_at)) return "ended_at should be a time as 2026-11-16T10:00:00Z";
  return { ...value, party_size, attributes } as RecordedTicket;
}

const isTime = (value: unknown): boolean => typeof value === "string" && !Number.isNaN(Date.parse(value));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
