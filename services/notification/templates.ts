/** The words of a notification, one template per type of event, made from the event alone: nothing has to be looked up. */
import type { Event, EventType } from "@todoke/contracts";

export interface Text {
  readonly en: string;
  readonly ja: string;
}

type Templates = { readonly [Type in EventType]: (event: Event<Type>) => Text };

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
};

export function textOf<Type extends EventType>(eventType: Type, event: Event<Type>): Text {
  return templates[eventType](event);
}
