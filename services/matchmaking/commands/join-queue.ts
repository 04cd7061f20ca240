/** Puts a user into a queue. The queue makes one ticket of a request, however often it is sent. */
import type { Db } from "@todoke/kernel/db";
import type { CommandResponse } from "@todoke/kernel/idempotency";
import type { FieldError } from "@todoke/kernel/problem";
import { attributesUnfit, partyTooLarge, setByBackend } from "../problems.ts";
import type { JoinedTicket, TicketQueue, TicketRequest } from "../queue/index.ts";
import { type ModeRules, playerErrors, ticketErrors } from "../rules/index.ts";
import { selectLastOpponents } from "../store/ended-tickets.ts";
import { countTicket } from "../telemetry.ts";

export type JoinRequest = Pick<TicketRequest, "key" | "mode" | "userId" | "partySize" | "attributes">;

export interface JoinDeps {
  readonly db: Db;
  readonly queue: Pick<TicketQueue, "join">;
  readonly rulesOf: (mode: string) => ModeRules;
  /** Wakes the matchers. */
  readonly onJoined: (mode: string) => void;
}

/** The request of a player, who may not set what the mode reserves for a back-end. */
export function joinQueue(deps: JoinDeps) {
  return async (request: JoinRequest): Promise<CommandResponse> => {
    const reserved = playerErrors(deps.rulesOf(request.mode), request);
    if (reserved.length > 0) throw setByBackend(formatErrors(reserved), { fields: reserved });
    return enqueue(deps, request);
  };
}

/** Checks the request against the mode's current rules before anything is stored, for a replay too. */
export async function enqueue(
  { db, queue, rulesOf, onJoined }: JoinDeps,
  request: JoinRequest,
): Promise<CommandResponse> {
  const { mode, userId } = request;
  const rules = rulesOf(mode);
  rejectUnfit(rules, request);
  const { avoidLastOpponentMs: withinMs, ticketMs, heartbeatMs } = rules;
  const avoid = withinMs === undefined ? [] : await selectLastOpponents(db, { mode, userId, withinMs });
  const limits = { ticketMs, ...(heartbeatMs !== undefined && { heartbeatMs }) };
  const joined = await queue.join({ ...request, avoid, ...limits });
  if (joined.kind === "new" && !joined.replayed) onJoined(mode);
  countTicket(mode, resultLabel(joined));
  return toResponse(joined);
}

function resultLabel({ kind, replayed }: JoinedTicket): string {
  if (replayed) return "replayed";
  return kind === "new" ? "joined" : "open";
}

function rejectUnfit(rules: ModeRules, request: JoinRequest): void {
  const fields = ticketErrors(rules, request);
  if (fields.length === 0) return;
  const problem = fields.every(({ field }) => field === "body.party_size") ? partyTooLarge : attributesUnfit;
  throw problem(formatErrors(fields), { fields });
}

const formatErrors = (fields: readonly FieldError[]) =>
  fields.map(({ field, detail }) => `${field} ${detail}`).join("; ");

/** Built only from what is stored with the key, so a replay is byte-identical. */
function toResponse({ kind, ticketId, expiresAt, replayed }: JoinedTicket): CommandResponse {
  const body = { ticket_id: ticketId, status: "QUEUED", expires_at: new Date(expiresAt).toISOString() };
  return {
    status: kind === "new" ? 201 : 200,
    contentType: "application/json; charset=utf-8",
    body: Buffer.from(JSON.stringify(body)),
    replayed,
  };
}
