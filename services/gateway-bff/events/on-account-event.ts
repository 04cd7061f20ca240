/**
 * Consumes account's events: every gateway process learns of a user's change, also if the process that forwarded it died
 * before it saved it (commands/propagate-user-change.ts). Each event has the whole state of the user.
 *
 * The PostgreSQL store writes on the connection of the inbox' transaction: with a second connection per event, concurrent
 * redrives could hold the whole pool and wait for more. The Redis store may apply an event twice, or apply it without
 * marking it as processed: a version that is stored already changes nothing.
 */
import { decodeEvent, type EventType, formatTimestamp, isEventType } from "@todoke/contracts";
import { roles as allRoles, type Role } from "@todoke/http";
import type { Envelope } from "@todoke/kernel/bus";
import type { Tx } from "@todoke/kernel/db";
import { type SessionStore, type UserSnapshot, type UserStatus, userStatuses } from "../sessions/index.ts";

type AccountEvent = Extract<EventType, `Account${string}`>;

const isAccountEvent = (type: EventType): type is AccountEvent => type.startsWith("Account");

/** Throws if this build cannot read the event: the inbox dead-letters it until a newer build redrives it. */
export function readEvent({ eventType, payload }: Envelope): UserSnapshot {
  if (!isEventType(eventType) || !isAccountEvent(eventType))
    throw new Error(`${eventType} is not an event type of account that this build knows`);
  const { userId, version, status, roles, suspendedUntil } = decodeEvent(eventType, payload);
  return {
    userId,
    status: parseStatus(status),
    // An unknown role of a newer build grants nothing here.
    roles: allRoles.filter((role): role is Role => (roles ?? "").split(",").includes(role)),
    version: Number(version),
    ...(suspendedUntil && { suspendedUntil: formatTimestamp(suspendedUntil) }),
  };
}

function parseStatus(text: string): UserStatus {
  const status = userStatuses.find((each) => each === text);
  if (!status) throw new Error(`${text} is not a user status that this build knows`);
  return status;
}

/** Handles a batch, in the order of user IDs, so that two batches cannot deadlock. The highest version wins. */
export const onAccountEvent =
  (sessions: Pick<SessionStore, "saveUser">) =>
  async (tx: Tx, users: readonly UserSnapshot[]): Promise<void> => {
    for (const user of users.toSorted((a, b) => a.userId.localeCompare(b.userId))) await sessions.saveUser(user, tx);
  };
