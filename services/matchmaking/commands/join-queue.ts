/**
 * Lets a user wait for a match. The queue sees to it that one wish becomes one ticket, however often it is sent; here the
 * wish is held to the mode's rules, as they are now, before anything of it is kept.
 */
import type { Db } from "@todoke/kernel/db";
import type { Answer, IdempotencyKey } from "@todoke/kernel/idempotency";
import type { FieldFault } from "@todoke/kernel/problem";
import { attributesUnfit, partyTooLarge, setByBackend } from "../problems.ts";
import type { Joined, TicketQueue } from "../queue/index.ts";
import { faultsOfPlayer, faultsOfTicket, type ModeRules } from "../rules/index.ts";
import { selectLastOpponents } from "../store/ends.ts";
import type { Attributes } from "../tickets.ts";

interface JoinRequest {
  readonly key: IdempotencyKey;
  readonly mode: string;
  readonly userId: string;
  /** Who sets party size and attributes: the player, or a back-end that acts for the player. */
  readonly setBy: "player" | "backend";
  readonly partySize: number;
  readonly attributes: Attributes;
}

export type JoinQueue = (request: JoinRequest) => Promise<Answer>;

export interface JoinDeps {
  readonly db: Db;
  readonly queue: Pick<TicketQueue, "join">;
  readonly rulesOf: (mode: string) => ModeRules;
  /** Hears of every new ticket: the matcher's wake-up. */
  readonly onJoined: (mode: string) => void;
}

export function joinQueue({ db, queue, rulesOf, onJoined }: JoinDeps): JoinQueue {
  return async (request) => {
    const { key, mode, userId, partySize, attributes } = request;
    const rules = rulesOf(mode);
    refuseUnfit(rules, request);
    const { avoidLastOpponentMs, ticketMs, heartbeatMs } = rules;
    const avoid =
      avoidLastOpponentMs === undefined
        ? []
        : await selectLastOpponents(db, { mode, userId, withinMs: avoidLastOpponentMs });
    const limits = { ticketMs, ...(heartbeatMs !== undefined && { heartbeatMs }) };
    const joined = await queue.join({ key, mode, userId, partySize, attributes, avoid, ...limits });
    if (joined.kind === "new" && !joined.replayed) onJoined(mode);
    return answerOf(joined);
  };
}

function refuseUnfit(rules: ModeRules, request: JoinRequest): void {
  const reserved = request.setBy === "player" ? faultsOfPlayer(rules, request) : [];
  if (reserved.length > 0) throw setByBackend(sentencesOf(reserved), { fields: reserved });
  const fields = faultsOfTicket(rules, request);
  if (fields.length === 0) return;
  const refuse = fields.every(({ field }) => field === "body.party_size") ? partyTooLarge : attributesUnfit;
  throw refuse(sentencesOf(fields), { fields });
}

const sentencesOf = (fields: readonly FieldFault[]) =>
  fields.map(({ field, detail }) => `${field} ${detail}`).join("; ");

/** Made of nothing but what the queue keeps with the key: so a replay is the same to the byte. */
function answerOf({ kind, ticketId, expiresAt, replayed }: Joined): Answer {
  const body = { ticket_id: ticketId, status: "QUEUED", expires_at: new Date(expiresAt).toISOString() };
  return {
    status: kind === "new" ? 201 : 200,
    contentType: "application/json; charset=utf-8",
    body: Buffer.from(JSON.stringify(body)),
    replayed,
  };
}
