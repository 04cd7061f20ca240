/**
 * Actions of one user on another, or on themselves. The actor's permission is checked inside the transaction. The change, its
 * audit row and its event commit together; an action that changes nothing writes nothing.
 */
import { hasStaffRole, problems } from "@todoke/http";
import type { Db, Tx } from "@todoke/kernel/db";
import { type CommandResponse, type IdempotencyKey, once } from "@todoke/kernel/idempotency";
import type { Outbox } from "@todoke/kernel/outbox";
import { accountInactive, userDeleted, userNotFound } from "../problems.ts";
import { lockUsers, selectUser, type UserView } from "../store/users.ts";
import { recordChange, type UserChange } from "./record-change.ts";

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
  /** Operators may act on users who are not staff. */
  readonly allowed: "admins" | "self-and-admins" | "operators";
  /** Changes a user who is not deleted. Returns undefined if there is nothing to change. */
  readonly change: (tx: Tx, user: UserView) => Promise<UserChange | undefined>;
}

/** Applies the action once per key. A replay returns the same bytes, as long as the actor is still allowed to act. */
export async function runUserAction(
  { db, outbox, waitMs }: UserActionDeps,
  { key, actorId, userId, reason }: UserActionRequest,
  { allowed = "admins", change }: Pick<UserAction, "change"> & Partial<Pick<UserAction, "allowed">>,
): Promise<CommandResponse> {
  const action = { actorId, userId, reason, allowed, change };
  const response = await once(
    db,
    key,
    async (tx) => ({ status: 200, body: await applyUserAction(tx, outbox, action) }),
    waitMs === undefined ? {} : { waitMs },
  );
  // A stored response shows another user. A user's own action may be the reason why they may do nothing now, such as a
  // deletion, so it is replayed without this check.
  if (response.replayed && actorId !== userId)
    rejectUnlessAllowed(await selectUser(db, actorId), await selectUser(db, userId), action);
  return response;
}

/** Returns the user after the action. */
export async function applyUserAction(tx: Tx, outbox: Outbox, action: UserAction): Promise<UserView> {
  const { actorId, userId, reason } = action;
  await lockUsers(tx, [actorId, userId]);
  const actor = await selectUser(tx, actorId);
  const before = await selectUser(tx, userId);
  rejectUnlessAllowed(actor, before, action);
  if (!before) throw userNotFound("no user has this id");
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
function rejectUnlessAllowed(actor: UserView | undefined, user: UserView | undefined, action: UserAction): void {
  const { actorId, userId, allowed } = action;
  if (actor?.status !== "ACTIVE") throw accountInactive("the account of the caller is suspended or deleted");
  if (allowed === "self-and-admins" && actorId === userId) return;
  if (hasStaffRole(actor.roles, "ADMIN")) return;
  if (allowed !== "operators") throw problems.forbidden("the caller is no longer an admin");
  if (!hasStaffRole(actor.roles, "OPERATOR")) throw problems.forbidden("the caller is no longer an operator");
  // Otherwise an operator could lock out those who may revoke the operator's role.
  if (user && hasStaffRole(user.roles, "VIEWER")) throw problems.forbidden("only an admin may do this to staff");
}
