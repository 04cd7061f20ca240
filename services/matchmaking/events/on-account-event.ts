/**
 * Handles the events of account: a suspended or deleted user waits in no queue.
 *
 * The user's tickets in every mode end as CANCELLED, in the transaction that marks the event as processed. Account notifies
 * the user, so there is no event of ours. A match that was made before stands. A version that is not higher than the last
 * one seen changes nothing, so late and repeated events have no effect.
 */
import { decodeEvent, type EventType, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import type { Tx } from "@todoke/kernel/db";
import type { TicketQueue } from "../queue/index.ts";
import { raiseUserVersions, type UserVersion } from "../store/user-versions.ts";

/** Whether a user may play, as of a version of the account. */
export interface UserState extends UserVersion {
  readonly mayPlay: boolean;
}

type AccountEvent = Extract<EventType, `Account${string}`>;

const isAccountEvent = (type: EventType): type is AccountEvent => type.startsWith("Account");

/** Throws if this build does not know the event; the inbox then dead-letters it, and a newer build can redrive it. */
export function readEvent({ eventType, payload }: Envelope): UserState {
  if (!isEventType(eventType) || !isAccountEvent(eventType))
    throw new Error(`${eventType} is not an account event that this build knows`);
  const { userId, version, status } = decodeEvent(eventType, payload);
  return { userId, version: Number(version), mayPlay: mayPlay(status) };
}

function mayPlay(status: string): boolean {
  if (status === "ACTIVE") return true;
  if (status === "SUSPENDED" || status === "DELETED") return false;
  throw new Error(`${status} is not a user status that this build knows`);
}

interface AccountEventDeps {
  readonly queue: Pick<TicketQueue, "cancelForUsers">;
  readonly modes: () => readonly string[];
}

/** Handles a batch, in any order: the highest version of each user counts. */
export const onAccountEvent =
  ({ queue, modes }: AccountEventDeps) =>
  async (tx: Tx, states: readonly UserState[]): Promise<void> => {
    const latest = latestPerUser(states);
    if (latest.length === 0) return;
    const raised = await raiseUserVersions(tx, latest);
    const userIds = latest.filter(({ userId, mayPlay }) => !mayPlay && raised.has(userId)).map(({ userId }) => userId);
    if (userIds.length > 0) await queue.cancelForUsers(tx, { userIds, modes: modes() });
  };

/** Version 1 is left out: no earlier version can arrive late, so it need not be stored. */
function latestPerUser(states: readonly UserState[]): readonly UserState[] {
  const latest = new Map<string, UserState>();
  for (const state of states)
    if (state.version > Math.max(1, latest.get(state.userId)?.version ?? 0)) latest.set(state.userId, state);
  return [...latest.values()];
}
