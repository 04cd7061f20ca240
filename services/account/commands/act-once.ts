/** An act that comes with an Idempotency-Key: carried out once, and answered the same to the byte ever after. */
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import type { Outbox } from "@todoke/kernel/outbox";
import { type Act, type Change, carryOut } from "./carry-out.ts";

export interface ActDeps {
  readonly db: Db;
  readonly outbox: Outbox;
}

/** What every such command is given. */
export interface ActRequest {
  readonly key: IdempotencyKey;
  readonly actorId: string;
  readonly userId: string;
  readonly reason: string;
}

export const actOnce = (
  { db, outbox }: ActDeps,
  { key, actorId, userId, reason }: ActRequest,
  { for: whom = "admins", change }: { readonly for?: Act["for"]; readonly change: Change },
): Promise<Answer> =>
  once(db, key, async (tx) => {
    const body = await carryOut(tx, { outbox, act: { actorId, userId, reason, for: whom }, change });
    return { status: 200, body };
  });
