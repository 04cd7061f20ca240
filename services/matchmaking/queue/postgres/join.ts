/**
 * How tickets are given out: wishes that come while a statement runs are granted together by the next one.
 *
 * Two wishes of one user in one mode, or with one key, never share a batch. A ticket of the user whose time is up is not in
 * the way of the next one: it is ended first, with its end on record.
 */
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { idempotencyConflict, keyColumns } from "@todoke/kernel/idempotency";
import { count } from "@todoke/kernel/telemetry";
import { ticketOpen } from "../../problems.ts";
import type { TicketIds } from "../../ticket-id.ts";
import type { Joined, JoinWish, TicketQueue } from "../index.ts";
import { type JoinedBody, type JoinResult, type JoinRow, joinTickets } from "./join-tickets.ts";

// One batch is carried out while another waits for the disk.
const lanes = 3;
// The second try finds the old ticket ended; a third is for one that was joined and ran out in between.
const triesMax = 3;

export interface JoinOptions {
  readonly db: Db;
  readonly ids: Pick<TicketIds, "create">;
  /** Ends the ticket if its time is up. */
  readonly endIfOver: (ticketId: string) => Promise<void>;
}

export function joinByBatches({ db, ids, endIfOver }: JoinOptions): TicketQueue["join"] {
  const submit = gather<JoinRow, JoinResult>({
    lanes,
    touches: (row) => [`key ${row.scope}\n${row.idem_key}`, `user ${row.mode}\n${row.user_id}`],
    run: (rows) => joinTickets(db, rows),
  });
  return async (wish) => {
    for (let tries = 1; ; tries++) {
      const result = await submit(joinRow(wish, ids.create(wish.mode, wish.userId)));
      if (result.result !== "over") return toldOf(result);
      if (tries === triesMax) throw ticketOpen(`ticket ${result.detail} is coming to its end; join again`);
      await endIfOver(result.detail as string);
    }
  };
}

function toldOf(result: Exclude<JoinResult, { result: "over" }>): Joined {
  if (result.result === "other")
    throw ticketOpen(`ticket ${result.detail} waits with another wish; cancel it to join with this one`);
  if (result.result === "conflict") {
    count("todoke.idempotency.requests", { result: "conflict" });
    throw idempotencyConflict("this Idempotency-Key was first sent with another wish; use a new key for a new ticket");
  }
  count("todoke.idempotency.requests", { result: result.result });
  const { status, body, replayed } = result;
  const { ticket_id: ticketId, expires_at: expiresAt }: JoinedBody = JSON.parse(body.toString());
  return { kind: status === 201 ? "new" : "open", ticketId, expiresAt, replayed };
}

const joinRow = ({ key, heartbeatMs, ...wish }: JoinWish, ticketId: string): JoinRow => ({
  ...keyColumns(key),
  ticket_id: ticketId,
  mode: wish.mode,
  user_id: wish.userId,
  party_size: wish.partySize,
  attributes: wish.attributes,
  avoid: wish.avoid,
  ticket_ms: Math.ceil(wish.ticketMs),
  heartbeat_ms: heartbeatMs === undefined ? null : Math.ceil(heartbeatMs),
});
