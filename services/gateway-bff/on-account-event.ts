/**
 * What account's events do here: the guarantee that every gateway process hears of a change of a user, also when the one
 * that passed it on died before it had written it down (commands/spread-change.ts).
 *
 * Who is shut out is in the event itself, and counts at once. What somebody may do again, or may do now, is not in it whole:
 * account is asked how the user is now, and as long as it cannot be, the event waits (while-account-answers.ts).
 *
 * `know` runs outside the inbox' transaction, for sessions may be in Redis. It may so happen twice, or happen and not be
 * marked as processed: a version that is known already changes nothing.
 */
import { decodeEvent, type EventType, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import { Problem } from "@todoke/kernel/problem";
import { knownUserOf } from "./commands/known-user.ts";
import type { KnownUser, SessionStore } from "./sessions/index.ts";
import type { Upstream } from "./upstreams/index.ts";

/** What an event says of a user; without `known`, that account has to be asked. */
export interface UserChange {
  readonly userId: string;
  readonly known?: KnownUser;
}

type AccountEvent = Extract<EventType, `Account${string}`>;

/** Throws when this build cannot read it: the inbox then puts it away whole, until one that can redrives it. */
export function readEvent({ eventType, payload }: Envelope): UserChange | undefined {
  if (!isEventType(eventType)) throw new Error(`${eventType} is not a type of event that this build knows`);
  if (!isOfAccount(eventType)) return undefined;
  // Whoever is new here has just logged in here, and is known from that.
  if (eventType === "AccountCreated") return undefined;
  if (eventType === "AccountSuspended") {
    const { userId, version, suspendedUntil: until } = decodeEvent(eventType, payload);
    // Without roles: they are of no use meanwhile, and the event that ends it brings them back.
    const known = { userId, status: "SUSPENDED", roles: [], version: Number(version) } as const;
    return { userId, known: until ? { ...known, suspendedUntil: timeOf(until) } : known };
  }
  const { userId, version } = decodeEvent(eventType, payload);
  if (eventType !== "AccountDeleted") return { userId };
  return { userId, known: { userId, status: "DELETED", roles: [], version: Number(version) } };
}

const isOfAccount = (type: EventType): type is AccountEvent => type.startsWith("Account");

/** RFC 3339, with the microseconds that account keeps: a suspension ends no sooner here than there. */
function timeOf({ seconds, nanos }: { readonly seconds: bigint; readonly nanos: number }): string {
  const upToSeconds = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${upToSeconds}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}

export interface OnAccountEventDeps {
  readonly sessions: Pick<SessionStore, "know">;
  readonly account: Pick<Upstream, "call">;
}

/** The effect of a batch. In any order: the highest version wins. */
export function onAccountEvent({ sessions, account }: OnAccountEventDeps) {
  return async (_tx: unknown, changes: readonly (UserChange | undefined)[]): Promise<void> => {
    const each = changes
      .filter((change) => change !== undefined)
      .map(async ({ userId, known }) => sessions.know(known ?? (await userNow(account, userId))));
    await Promise.all(each);
  };
}

/** For whileAccountAnswers: what can be read by itself, or not at all, need not wait. */
export function answersAbout(account: Pick<Upstream, "call">) {
  return async (delivery: Envelope): Promise<boolean> => {
    const change = readable(delivery);
    if (!change || change.known) return true;
    return userNow(account, change.userId).then(
      () => true,
      (error) => !(error instanceof AccountAway),
    );
  };
}

function readable(delivery: Envelope): UserChange | undefined {
  try {
    return readEvent(delivery);
  } catch {
    return undefined; // The inbox meets the same error and deals with it.
  }
}

async function userNow(account: Pick<Upstream, "call">, userId: string): Promise<KnownUser> {
  try {
    const path = `/users/${encodeURIComponent(userId)}`;
    return knownUserOf((await account.call({ method: "GET", path, user: { userId, roles: [] } })).value);
  } catch (cause) {
    // A refusal is final. That account is away is not.
    if (cause instanceof Problem && cause.status < 500) throw cause;
    throw new AccountAway("account cannot be asked how the user is now", { cause });
  }
}

class AccountAway extends Error {
  override readonly name = "AccountAway";
  /** By this the kernel's `isUnavailable` knows it: the event is given back, and comes again. */
  readonly code = "ECONNRESET";
}
