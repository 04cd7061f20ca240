/**
 * Actions of one user on another, or on themselves. The actor's permission is checked inside the transaction. The change, its
 * audit row and its event commit together; an action that changes nothing writes nothing.
 */
import { problems } from "@todoke/http";
import type { Db, Tx } from "@todoke/kernel/db";
import { type Answer, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import type { Outbox } from "@todoke/kernel/outbox";
import { accountInactive, userDeleted } from "../problems.ts";
import { lockUsers, selectUser, type UserView } from "../store/users.ts";
import { existingUser, recordChange, type UserChange } from "./record-change.ts";

export interface UserActionDeps {
  readonly db: Db;
  readonly outbox: Outbox;
  /** How long a duplicate request waits for the first, and an action for a lock; the default of `once` if not set. */
  readonly waitMs?: number;
}

export interface UserActionRequest {
  readonly key: IdempotencyKey;
  readonly actorId: string;
  readonly userId: string;
  readonly reason: string;
}

export interface UserAction {
  readonly actorId: string;
  /** The user who is changed. */
  readonly userId: string;
  readonly reason?: string;
  readonly allowed: "admins" | "self-and-admins";
  /** Changes a user who is not deleted. Returns undefined if there is nothing to change. */
  readonly change: (tx: Tx, user: UserView) => Promise<UserChange | undefined>;
}

/** Applies the action once per key. A replay returns the same bytes, as long as the actor is still allowed to act. */
export async function runUserAction(
  { db, outbox, waitMs }: UserActionDeps,
  { key, actorId, userId, reason }: UserActionRequest,
  { allowed = "admins", change }: Pick<UserAction, "change"> & Partial<Pick<UserAction, "allowed">>,
): Promise<Answer> {
  const action = { actorId, userId, reason, allowed, change };
  const response = await once(
    db,
    key,
    async (tx) => ({ status: 200, body: await applyUserAction(tx, outbox, action) }),
    waitMs === undefined ? {} : { waitMs },
  );
  // A stored response shows another user. A user's own action may be the reason why they may do nothing now, such as a
  // deletion, so it is replayed without this check.
  if (response.replayed && actorId !== userId) rejectUnlessAllowed(await selectUser(db, actorId), action);
  return response;
}

/** Returns the user after the action. */
export async function applyUserAction(tx: Tx, outbox: Outbox, action: UserAction): Promise<UserView> {
  const { actorId, userId, reason } = action;
  await lockUsers(tx, [actorId, userId]);
  rejectUnlessAllowed(await selectUser(tx, actorId), action);
  const before = await existingUser(tx, userId);
  if (before.status === "DELETED") throw userDeleted("this user was deleted and cannot be changed");
  const change = await action.change(tx, before);
  if (!change) return before;
  return recordChange(tx, outbox, {
    before,
    change,
    actor: `user:${actorId}`,
    ...(reason !== undefined && { reason }),
  });
}

/** The caller's token may be up to a minute old; the rows are current. */
function rejectUnlessAllowed(actor: UserView | undefined, { actorId, userId, allowed }: UserAction): void {
  if (actor?.status !== "ACTIVE") throw accountInactive("the account of the caller is suspended or deleted");
  if (allowed === "self-and-admins" && actorId === userId) return;
  if (!actor.roles.includes("ADMIN")) throw problems.forbidden("the caller is no longer an admin");
}
