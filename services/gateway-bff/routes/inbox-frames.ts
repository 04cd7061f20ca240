/**
 * The events of notification's stream, one by one and whole, and what they tell in one language. A client never gets a part
 * of an event: where a stream breaks off, it breaks off between two.
 */
import type { Language } from "../language.ts";

/** What a user was told, as notification has it. */
export interface Told {
  readonly notification_id: string;
  readonly event_type: string;
  readonly text: Readonly<Record<Language, string>>;
  /** For programs; goes through as it is. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly occurred_at: string;
}

export function inOneLanguage({ notification_id, event_type, text, data, occurred_at }: Told, language: Language) {
  return { notification_id, event_type, text: text[language], ...(data !== undefined && { data }), occurred_at };
}

// A notification has some hundred characters.
const frameMax = 256 * 1_024;

/** Those that have come together, each as it came, with the empty line that ends it. */
export async function* framesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for await (const chunk of bytes) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    if (rest.length > frameMax) throw new Error(`an event is longer than ${frameMax} characters`);
    if (frames.length > 0) yield frames.map((frame) => `${frame}\n\n`);
  }
}

/** Whether it tells the user something; others say where the stream begins, that it lives, when to come back. */
export const isTelling = (frame: string) => frame.includes("\nevent: notification\n");

export function frameInOneLanguage(frame: string, language: Language): string {
  if (!isTelling(frame)) return frame;
  return frame.replace(
    /^data: (.*)$/m,
    (_, json) => `data: ${JSON.stringify(inOneLanguage(JSON.parse(json), language))}`,
  );
}
