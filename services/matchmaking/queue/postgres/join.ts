/**
 * Joins in batches: requests that arrive while a statement runs go into the next one.
 *
 * Two requests with the same key, or of one user in one mode, never share a batch. If the user's open ticket is expired, its
 * end is recorded first and the join is repeated.
 */

import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { keyConflict, toKeyColumns } from "@todoke/kernel/idempotency";
import { count } from "@todoke/kernel/telemetry";
import { ticketOpen } from "../../problems.ts";
import { type JoinedBody, type JoinResult, type JoinRow, joinTickets } from "../../store/queue/join-tickets.ts";
import { differentRequest } from "../different-request.ts";
import type { JoinedTicket, TicketQueue, TicketRequest } from "../index.ts";
import type { TicketIds } from "../ticket-id.ts";

// Statements in flight: some run while others wait for the disk.
const concurrency = 3;
// The second attempt finds the expired ticket ended; a third is for a ticket that was joined and expired in between.
const attemptsMax = 3;

export interface JoinOptions {
  readonly db: Db;
  readonly ids: Pick<TicketIds, "create">;
  readonly endIfExpired: (ticketId: string) => Promise<void>;
}

export function createBatchedJoin({ db, ids, endIfExpired }: JoinOptions): TicketQueue["join"] {
  const submit = createBatcher<JoinRow, JoinResult>({
    concurrency,
    conflictKeys: (row) => [`key ${row.scope}\n${row.idem_key}`, `user ${row.mode}\n${row.user_id}`],
    run: (rows) => joinTickets(db, rows),
  });
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      const result = await submit(toRow(request, ids.create(request.mode, request.userId)));
      if (result.result !== "expired") return toJoinedTicket(result);
      if (attempt === attemptsMax) throw ticketOpen(`Ticket ${result.detail} is about to expire. Join again.`);
      await endIfExpired(result.detail as string);
    }
  };
}

function toJoinedTicket(result: Exclude<JoinResult, { result: "expired" }>): JoinedTicket {
  if (result.result === "different") throw differentRequest(result.detail as string);
  count("todoke.idempotency.requests", { result: result.result });
  if (result.result === "conflict") throw keyConflict();
  const { status, body, replayed } = result;
  const { ticket_id: ticketId, expires_at: expiresAt }: JoinedBody = JSON.parse(body.toString());
  return { kind: status === 201 ? "new" : "open", ticketId, expiresAt, replayed };
}

const toRow = ({ key, heartbeatMs, ...request }: TicketRequest, ticketId: string): JoinRow => ({
  ...toKeyColumns(key),
  ticket_id: ticketId,
  mode: request.mode,
  user_id: request.userId,
  party_size: request.partySize,
  attributes: request.attributes,
  avoid: request.avoid,
  ticket_ms: Math.ceil(request.ticketMs),
  heartbeat_ms: heartbeatMs === undefined ? null : Math.ceil(heartbeatMs),
});
