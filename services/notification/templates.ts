/** The words of a notification, one template per type of event, made from the event alone: nothing has to be looked up. */
import type { Event, EventType } from "@todoke/contracts";

export interface Text {
  readonly en: string;
  readonly ja: string;
}

/** Undefined where there is nothing to tell the user: the event is dealt with, and no notification is made. */
type Templates = { readonly [Type in EventType]: (event: Event<Type>) => Text | undefined };

const templates: Templates = {
  EntitlementGranted: ({ stockKeepingUnit }) => ({
    en: `You can now use ${stockKeepingUnit}.`,
    ja: `${stockKeepingUnit} をご利用いただけるようになりました。`,
  }),
  EntitlementRevoked: ({ stockKeepingUnit }) => ({
    en: `You can no longer use ${stockKeepingUnit}.`,
    ja: `${stockKeepingUnit} はご利用いただけなくなりました。`,
  }),
  EntitlementExpired: ({ stockKeepingUnit }) => ({
    en: `Your time with ${stockKeepingUnit} is over.`,
    ja: `${stockKeepingUnit} のご利用期間が終了しました。`,
  }),
  AccountCreated: () => ({
    en: "Welcome! Your account is ready.",
    ja: "ようこそ。アカウントの準備ができました。",
  }),
  AccountSuspended: ({ reason, suspendedUntil }) => {
    const until = suspendedUntil && minuteOf(suspendedUntil);
    return {
      en: `Your account is suspended${until ? ` until ${until}` : ""}. Reason: ${reason}`,
      ja: `アカウントが${until ? ` ${until} まで` : ""}停止されました。理由: ${reason}`,
    };
  },
  AccountReinstated: () => ({
    en: "Your account can be used again.",
    ja: "アカウントを再びご利用いただけます。",
  }),
  // Who may do what is between admins, and who is gone reads nothing any more.
  AccountRolesChanged: () => undefined,
  AccountDeleted: () => undefined,
};

export function textOf<Type extends EventType>(eventType: Type, event: Event<Type>): Text | undefined {
  return templates[eventType](event);
}

/** A reader has a clock, but not the server's zone: 2026-01-31 09:30 UTC. */
function minuteOf({ seconds }: { readonly seconds: bigint }): string {
  const time = new Date(Number(seconds) * 1_000).toISOString();
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}
