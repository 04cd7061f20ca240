/**
 * What account's events do here: the guarantee that every gateway process hears of a change of a user, also when the one
 * that passed it on died before it had written it down (commands/spread-change.ts). Each event tells how the user stands, so
 * that nothing has to be asked.
 *
 * Sessions in PostgreSQL change in the inbox' transaction and on its connection: with a second one for each event, redrives that
 * run at once could hold the whole pool and wait for more of it. Sessions in Redis may change twice, or change without the event
 * being marked as processed: a version that is known already changes nothing.
 */
import { decodeEvent, type EventType, isEventType } from "@todoke/contracts";
import { roles as knownRoles, type Role } from "@todoke/http";
import type { Envelope } from "@todoke/kernel/bus";
import type { Tx } from "@todoke/kernel/db";
import { type KnownUser, type SessionStore, type UserStatus, userStatuses } from "./sessions/index.ts";

type AccountEvent = Extract<EventType, `Account${string}`>;

const isOfAccount = (type: EventType): type is AccountEvent => type.startsWith("Account");

/** Throws when this build cannot read it: the inbox then puts it away whole, until one that can redrives it. */
export function readEvent({ eventType, payload }: Envelope): KnownUser {
  if (!isEventType(eventType) || !isOfAccount(eventType))
    throw new Error(`${eventType} is not a type of event about a user that this build knows`);
  const { userId, version, status, roles, suspendedUntil } = decodeEvent(eventType, payload);
  return {
    userId,
    status: statusOf(status),
    // A role that only a newer build knows lets nobody do anything here.
    roles: knownRoles.filter((role): role is Role => (roles ?? "").split(",").includes(role)),
    version: Number(version),
    ...(suspendedUntil && { suspendedUntil: timeOf(suspendedUntil) }),
  };
}

function statusOf(text: string): UserStatus {
  const status = userStatuses.find((known) => known === text);
  if (!status) throw new Error(`${text} is not a status of a user that this build knows`);
  return status;
}

/** RFC 3339, with the microseconds that account keeps: a suspension ends no sooner here than there. */
function timeOf({ seconds, nanos }: { readonly seconds: bigint; readonly nanos: number }): string {
  const upToSeconds = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${upToSeconds}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}

/** The effect of a batch. The highest version of a user wins in any order; by user id, so that two batches cannot deadlock. */
export const onAccountEvent =
  (sessions: Pick<SessionStore, "know">) =>
  async (tx: Tx, users: readonly KnownUser[]): Promise<void> => {
    for (const user of users.toSorted((a, b) => a.userId.localeCompare(b.userId))) await sessions.know(user, tx);
  };
