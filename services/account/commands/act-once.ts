/**
 * An act that comes with an Idempotency-Key: carried out once, and answered the same to the byte ever after, to whoever may
 * still carry it out.
 */
import type { Db } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import type { Outbox } from "@todoke/kernel/outbox";
import { selectUser } from "../store/users.ts";
import { type Act, type Change, carryOut, refuseUnlessAllowed } from "./carry-out.ts";

export interface ActDeps {
  readonly db: Db;
  readonly outbox: Outbox;
  /** How long a duplicate, or whoever meets another's lock, waits; as long as `once` has it, unless said otherwise. */
  readonly waitMs?: number;
}

/** What every such command is given. */
export interface ActRequest {
  readonly key: IdempotencyKey;
  readonly actorId: string;
  readonly userId: string;
  readonly reason: string;
}

export async function actOnce(
  { db, outbox, waitMs }: ActDeps,
  { key, actorId, userId, reason }: ActRequest,
  { for: whom = "admins", change }: { readonly for?: Act["for"]; readonly change: Change },
): Promise<Answer> {
  const act: Act = { actorId, userId, reason, for: whom };
  const answer = await once(
    db,
    key,
    async (tx) => ({ status: 200, body: await carryOut(tx, { outbox, act, change }) }),
    waitMs === undefined ? {} : { waitMs },
  );
  // An old answer tells of another user. What somebody did to themself they may hear of again, though it is why they may
  // do nothing more.
  if (answer.replayed && actorId !== userId) refuseUnlessAllowed(await selectUser(db, actorId), act);
  return answer;
}
