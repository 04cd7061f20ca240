/**
 * What every change of a user leaves behind, in its transaction: one audit row for the version that it made, with the fields
 * that changed, and its event if it has one.
 */
import type { Tx } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { type AccountEvent, accountEvent } from "../events.ts";
import { userNotFound } from "../problems.ts";
import { type AuditAction, insertAudit } from "../store/audit.ts";
import { personalFields } from "../store/change-users.ts";
import { selectUser, type UserView } from "../store/users.ts";

/** What was done, for the audit, and what is told of it. */
export interface Done {
  readonly action: AuditAction;
  readonly event?: AccountEvent;
  /** What the event says besides, from the user as it is now. */
  readonly said?: (user: UserView) => object;
}

export interface Changed {
  readonly outbox: Outbox;
  readonly actor: string;
  readonly reason?: string;
  readonly done: Done;
  /** The user before the change, read while its row was locked. */
  readonly before: UserView;
}

/** Returns the user as it is after the change. */
export async function settle(tx: Tx, { outbox, actor, reason, done, before }: Changed): Promise<UserView> {
  const after = await existingUser(tx, before.user_id);
  const fields = changedFields(before, after);
  await insertAudit(tx, {
    user_id: after.user_id,
    version: after.version,
    actor,
    action: done.action,
    ...(reason !== undefined && { reason }),
    before: only(before, fields),
    after: only(after, fields),
  });
  if (done.event) await outbox.append(tx, accountEvent(done.event, after, done.said?.(after) ?? {}));
  return after;
}

export async function existingUser(tx: Tx, userId: string): Promise<UserView> {
  const user = await selectUser(tx, userId);
  if (!user) throw userNotFound("no user has this id");
  return user;
}

const notAudited: readonly string[] = ["user_id", "version", "created_at", "updated_at"];

function changedFields(before: UserView, after: UserView): string[] {
  // A deletion leaves nothing personal behind, so its row has nothing of the kind either.
  const left = after.status === "DELETED" ? [...notAudited, ...personalFields] : notAudited;
  const valueIn = (user: UserView, field: string) => JSON.stringify(user[field as keyof UserView]);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (field) => !left.includes(field) && valueIn(before, field) !== valueIn(after, field),
  );
}

const only = (user: UserView, fields: readonly string[]): object =>
  Object.fromEntries(Object.entries(user).filter(([field]) => fields.includes(field)));
