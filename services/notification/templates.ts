/**
 * Whom an event concerns, and what each of them is told: one template per type of event, made from the event alone, so
 * that nothing has to be looked up.
 */
import type { Event, EventType } from "@todoke/contracts";

export interface Text {
  readonly en: string;
  readonly ja: string;
}

/** What a program needs beside the words, which are for people and may be put in other words tomorrow. */
export type Data = Readonly<Record<string, string | number>>;

export interface Telling {
  readonly user_id: string;
  readonly text: Text;
  readonly data?: Data;
}

/** Nobody is told of an event with no tellings: it is dealt with, and no notification is made. */
type Templates = { readonly [Type in EventType]: (event: Event<Type>) => readonly Telling[] };

const templates: Templates = {
  EntitlementGranted: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `You can now use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} をご利用いただけるようになりました。`,
    }),
  EntitlementRevoked: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `You can no longer use ${stockKeepingUnit}.`,
      ja: `${stockKeepingUnit} はご利用いただけなくなりました。`,
    }),
  EntitlementExpired: ({ userId, stockKeepingUnit }) =>
    tell(userId, {
      en: `Your time with ${stockKeepingUnit} is over.`,
      ja: `${stockKeepingUnit} のご利用期間が終了しました。`,
    }),
  AccountCreated: ({ userId }) =>
    tell(userId, {
      en: "Welcome! Your account is ready.",
      ja: "ようこそ。アカウントの準備ができました。",
    }),
  AccountSuspended: ({ userId, reason, suspendedUntil }) => {
    const until = suspendedUntil && minuteOf(suspendedUntil);
    return tell(userId, {
      en: `Your account is suspended${until ? ` until ${until}` : ""}. Reason: ${reason}`,
      ja: `アカウントが${until ? ` ${until} まで` : ""}停止されました。理由: ${reason}`,
    });
  },
  AccountReinstated: ({ userId }) =>
    tell(userId, {
      en: "Your account can be used again.",
      ja: "アカウントを再びご利用いただけます。",
    }),
  // Who may do what is between admins, and who is gone reads nothing any more.
  AccountRolesChanged: () => [],
  AccountDeleted: () => [],
  MatchMade: ({ matchId, mode, players }) => {
    const text = { en: `Your match in ${mode} is ready.`, ja: `${mode} のマッチが成立しました。` };
    return players.map(({ userId, ticketId, team }) => ({
      user_id: userId,
      text,
      data: { ticket_id: ticketId, match_id: matchId, mode, team: Number(team) },
    }));
  },
  TicketExpired: ({ userId, ticketId, mode, reason }) => {
    const text = {
      en: `No match was found in ${mode}. You can queue again.`,
      ja: `${mode} のマッチは成立しませんでした。もう一度お並びいただけます。`,
    };
    return [{ user_id: userId, text, data: { ticket_id: ticketId, mode, reason } }];
  },
};

const tell = (userId: string, text: Text): readonly Telling[] => [{ user_id: userId, text }];

/** One for each user, whatever the event lists twice. */
export function tellingsOf<Type extends EventType>(eventType: Type, event: Event<Type>): readonly Telling[] {
  const byUser = Map.groupBy(templates[eventType](event), ({ user_id }) => user_id);
  return [...byUser.values()].flatMap((tellings) => tellings.slice(0, 1));
}

/** A reader has a clock, but not the server's zone: 2026-01-31 09:30 UTC. */
function minuteOf({ seconds }: { readonly seconds: bigint }): string {
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}
