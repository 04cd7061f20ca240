/** Rows of `tickets`. A row that is not a valid ticket is reported as damaged. */
import type { Attributes, AttributeValue, OpenTicket, TicketEnd } from "../../queue/ticket.ts";

/** Times are milliseconds since 1970. */
export interface TicketRow {
  readonly ticket_id: string;
  /** Orders tickets that joined in the same millisecond. */
  readonly position: bigint;
  readonly mode: string;
  readonly user_id: string;
  readonly party_size: number;
  readonly attributes: unknown;
  readonly avoid: readonly string[];
  readonly joined_at: number;
  readonly expires_at: number;
  readonly alive_until: number;
  /** When the row was read. */
  readonly now: number;
  readonly is_expired: boolean;
}

const ms = (time: string) => `(extract(epoch from ${time}) * 1000)::float8`;

/** Columns of `tickets t`. The table stores whole milliseconds, so no time changes in the conversion. */
export const ticketColumns = `t.ticket_id, t.position, t.mode, t.user_id, t.party_size, t.attributes, t.avoid,
  ${ms("t.joined_at")} as joined_at, ${ms("t.expires_at")} as expires_at, ${ms("t.alive_until")} as alive_until,
  ${ms("date_trunc('milliseconds', statement_timestamp())")} as now,
  t.alive_until <= statement_timestamp() as is_expired`;

export type Damaged = Extract<TicketEnd, { kind: "damaged" }>;

export function parseRow(row: TicketRow): OpenTicket | Damaged {
  const { ticket_id: ticketId, mode, attributes, now: endedAt } = row;
  if (!areAttributes(attributes))
    return { kind: "damaged", mode, ticketId, raw: formatRow(row), why: "its attributes are not valid", endedAt };
  return {
    ticketId,
    mode,
    userId: row.user_id,
    partySize: row.party_size,
    attributes,
    avoid: row.avoid,
    joinedAt: row.joined_at,
    expiresAt: row.expires_at,
    aliveUntil: row.alive_until,
  };
}

export const isDamaged = (parsed: OpenTicket | Damaged): parsed is Damaged => "kind" in parsed;
export const isTicket = (parsed: OpenTicket | Damaged): parsed is OpenTicket => !isDamaged(parsed);

const formatRow = ({ position, ...row }: TicketRow): string => JSON.stringify({ ...row, position: String(position) });

const areAttributes = (value: unknown): value is Attributes =>
  isObject(value) && Object.values(value).every(isAttributeValue);

function isAttributeValue(value: unknown): value is AttributeValue {
  if (Array.isArray(value)) return value.every((each) => typeof each === "string");
  if (isObject(value)) return Object.values(value).every((each) => typeof each === "number");
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
