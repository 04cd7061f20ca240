/** The events of notification's stream, always complete, translated to one language. */
import type { Language } from "../language/accept-language.ts";

/** A notification as notification returns it. */
export interface NotificationView {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: Readonly<Record<Language, string>>;
  /** For programs; passed on unchanged. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly occurred_at: string;
}

function toLanguage(view: NotificationView, language: Language) {
  const { notification_id, event_type, text, data, occurred_at } = view;
  return { notification_id, event_type, text: text[language], ...(data !== undefined && { data }), occurred_at };
}

/** Notification's response. */
interface InboxPage {
  readonly notifications: readonly NotificationView[];
  readonly last_event_id?: string;
  readonly next_cursor?: string;
}

export function inboxInLanguage(value: unknown, language: Language) {
  const { notifications, last_event_id, next_cursor } = value as InboxPage;
  return {
    notifications: notifications.map((notification) => toLanguage(notification, language)),
    ...(last_event_id !== undefined && { last_event_id }),
    ...(next_cursor !== undefined && { next_cursor }),
  };
}

// A notification has a few hundred characters.
const frameMax = 256 * 1_024;

/** Yields the complete events of each chunk, with the empty line that ends them. */
export async function* readFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for await (const chunk of bytes) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    if (rest.length > frameMax) throw new Error(`an event is longer than ${frameMax} characters`);
    if (frames.length > 0) yield frames.map((frame) => `${frame}\n\n`);
  }
}

/** Other frames are keep-alives, start positions and retry times. */
export const isNotification = (frame: string): boolean => frame.includes("\nevent: notification\n");

export function frameToLanguage(frame: string, language: Language): string {
  if (!isNotification(frame)) return frame;
  return frame.replace(/^data: (.*)$/m, (_, json) => `data: ${JSON.stringify(toLanguage(JSON.parse(json), language))}`);
}
