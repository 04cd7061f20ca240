/** Writes the audit row of a changed user, with the fields that changed, and the event, if the change has one. */
import type { Tx } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import { type AccountEvent, accountEvent } from "../events/account-events.ts";
import { userNotFound } from "../problems.ts";
import { type AuditAction, insertAudit } from "../store/audit.ts";
import { personalFields } from "../store/change-users.ts";
import { selectUser, type UserView } from "../store/users.ts";

export interface UserChange {
  readonly action: AuditAction;
  readonly event?: AccountEvent;
  /** Fields of the event besides those that every account event has. */
  readonly eventFields?: object;
}

export interface ChangeRecord {
  readonly actor: string;
  readonly reason?: string;
  readonly change: UserChange;
  /** The user before the change, read with its row locked. */
  readonly before: UserView;
}

/** Returns the user after the change. */
export async function recordChange(tx: Tx, outbox: Outbox, record: ChangeRecord): Promise<UserView> {
  const { before, change, actor, reason } = record;
  const after = await existingUser(tx, before.user_id);
  const fields = changedFields(before, after);
  const row = {
    user_id: after.user_id,
    version: after.version,
    actor,
    action: change.action,
    ...(reason !== undefined && { reason }),
    before: pick(before, fields),
    after: pick(after, fields),
  };
  await insertAudit(tx, [row]);
  if (change.event) await outbox.append(tx, accountEvent(change.event, after, change.eventFields));
  return after;
}

async function existingUser(tx: Tx, userId: string): Promise<UserView> {
  const user = await selectUser(tx, userId);
  if (!user) throw userNotFound("no user has this id");
  return user;
}

const notAudited: readonly string[] = ["user_id", "version", "created_at", "updated_at"];

function changedFields(before: UserView, after: UserView): string[] {
  // The audit of a deletion must not keep the personal data that the deletion erases.
  const omitted = after.status === "DELETED" ? [...notAudited, ...personalFields] : notAudited;
  const valueIn = (user: UserView, field: string) => JSON.stringify(user[field as keyof UserView]);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (field) => !omitted.includes(field) && valueIn(before, field) !== valueIn(after, field),
  );
}

const pick = (user: UserView, fields: readonly string[]): object =>
  Object.fromEntries(Object.entries(user).filter(([field]) => fields.includes(field)));
