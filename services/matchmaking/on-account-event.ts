/**
 * What account's events do here: whoever may not play any more waits for nobody, and nobody is matched with them.
 *
 * The tickets of a user who was suspended or deleted end as CANCELLED, in every mode, in the transaction that marks the event
 * as processed; account has told the user, and nobody else needs to hear of it. A match that was made before stands. An event
 * that comes late, or again, ends nothing: a version of the user that is not higher than the one seen last is no news.
 */
import { decodeEvent, type EventType, isEventType } from "@todoke/contracts";
import type { Envelope } from "@todoke/kernel/bus";
import type { Tx } from "@todoke/kernel/db";
import type { TicketQueue } from "./queue/index.ts";
import { raiseUserVersions, type UserVersion } from "./store/user-versions.ts";

/** How a user stands, and since which version. */
export interface Standing extends UserVersion {
  readonly mayPlay: boolean;
}

type AccountEvent = Extract<EventType, `Account${string}`>;

const isOfAccount = (type: EventType): type is AccountEvent => type.startsWith("Account");

/** Throws when this build cannot read it: the inbox then puts it away whole, until one that can redrives it. */
export function readEvent({ eventType, payload }: Envelope): Standing {
  if (!isEventType(eventType) || !isOfAccount(eventType))
    throw new Error(`${eventType} is not a type of event about a user that this build knows`);
  const { userId, version, status } = decodeEvent(eventType, payload);
  return { userId, version: Number(version), mayPlay: mayPlay(status) };
}

function mayPlay(status: string): boolean {
  if (status === "ACTIVE") return true;
  if (status === "SUSPENDED" || status === "DELETED") return false;
  throw new Error(`${status} is not a status of a user that this build knows`);
}

interface Tickets {
  readonly queue: Pick<TicketQueue, "cancelAllOf">;
  readonly modes: () => readonly string[];
}

/** The effect of a batch. In any order: of each user the highest version counts. */
export const onAccountEvent =
  ({ queue, modes }: Tickets) =>
  async (tx: Tx, told: readonly Standing[]): Promise<void> => {
    const latest = latestOf(told);
    if (latest.length === 0) return;
    const news = await raiseUserVersions(tx, latest);
    const userIds = latest.filter(({ userId, mayPlay }) => !mayPlay && news.has(userId)).map(({ userId }) => userId);
    if (userIds.length > 0) await queue.cancelAllOf(tx, { userIds, modes: modes() });
  };

/** Of each user the last word. A first version is left out: there is none before it that could come late. */
function latestOf(told: readonly Standing[]): readonly Standing[] {
  const latest = new Map<string, Standing>();
  for (const each of told)
    if (each.version > Math.max(1, latest.get(each.userId)?.version ?? 0)) latest.set(each.userId, each);
  return [...latest.values()];
}
