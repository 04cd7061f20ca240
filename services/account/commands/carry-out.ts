/**
 * One act of one user on one user, in a transaction: whoever acts may do so at that very moment, and the change, its audit
 * row and its event commit together or not at all. What changes nothing writes nothing.
 */
import { problems } from "@todoke/http";
import type { Tx } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { accountInactive, userDeleted } from "../problems.ts";
import { lockUsers, selectUser, type UserView } from "../store/users.ts";
import { type Done, existingUser, settle } from "./settle.ts";

export interface Act {
  /** The user who acts. */
  readonly actorId: string;
  /** Whom it is about. */
  readonly userId: string;
  readonly reason?: string;
  /** Whether it is for admins only, or everybody may also do it to themself. */
  readonly for: "admins" | "oneself";
}

/** Changes a user who is there and not deleted; undefined when everything is already as it should be. */
export type Change = (tx: Tx, user: UserView) => Promise<Done | undefined>;

export interface CarryOutOptions {
  readonly outbox: Outbox;
  readonly act: Act;
  readonly change: Change;
}

/** Returns the user as it is afterwards. */
export async function carryOut(tx: Tx, { outbox, act, change }: CarryOutOptions): Promise<UserView> {
  const { actorId, userId, reason } = act;
  await lockUsers(tx, [actorId, userId]);
  refuseUnlessAllowed(await selectUser(tx, actorId), act);
  const before = await existingUser(tx, userId);
  if (before.status === "DELETED") throw userDeleted("this user was deleted; nothing can be changed any more");
  const done = await change(tx, before);
  if (!done) return before;
  return settle(tx, { outbox, actor: `user:${actorId}`, ...(reason !== undefined && { reason }), done, before });
}

/** The caller's token says what was true when it was signed; the rows say what is true now. */
export function refuseUnlessAllowed(actor: UserView | undefined, { actorId, userId, for: whom }: Act): void {
  if (actor?.status !== "ACTIVE") throw accountInactive("the account of the caller is suspended, or was deleted");
  if (whom === "oneself" && actorId === userId) return;
  if (!actor.roles.includes("ADMIN")) throw problems.forbidden("the caller is not an admin any more");
}
