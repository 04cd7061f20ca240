/**
 * Passes notification's stream on to a client, event by event; nothing is stored here.
 *
 * A stream lasts no longer than its session, which a suspension ends too: the session is checked before every notification
 * and every few seconds. If the check fails, the stream ends. Following a stream does not count as use of the session. When
 * one side leaves, the other is released at once; a slow client slows only its own stream.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Language } from "../language/accept-language.ts";
import type { Session, SessionStore } from "../sessions/index.ts";
import { frameToLanguage, isNotification, readFrames } from "./frames.ts";

// Notification sends a keep-alive every 15 s. A stream that is silent for longer than this is broken.
const silenceMaxMs = 45_000;
const sessionCheckMs = 5_000;
/** How long a client may take to read the end of its stream. */
const lastWriteMaxMs = 1_000;

export interface StreamTarget {
  readonly response: ServerResponse;
  readonly language: Language;
  readonly isLive: () => Promise<boolean>;
  readonly leave: AbortController;
}

/** Runs until either side ends or `leave` aborts. A client reconnects with the last ID that it saw. */
export async function passStream(events: AsyncIterable<Uint8Array>, target: StreamTarget): Promise<void> {
  const { response, language, isLive, leave } = target;
  const silence = setTimeout(() => leave.abort(), silenceMaxMs);
  const sessionCheck = setInterval(async () => {
    if (!(await isLive())) leave.abort();
  }, sessionCheckMs);
  try {
    for await (const frames of readFrames(events)) {
      silence.refresh();
      if (frames.some(isNotification) && !(await isLive())) break;
      const isAccepted = response.write(frames.map((frame) => frameToLanguage(frame, language)).join(""));
      if (!isAccepted) await once(response, "drain", { signal: leave.signal });
    }
  } catch {
    // The stream broke, or `leave` was aborted.
  } finally {
    clearTimeout(silence);
    clearInterval(sessionCheck);
    leave.abort();
    response.end(`retry: ${Math.round(500 + Math.random() * 2_000)}\n\n`);
    setTimeout(() => !response.writableFinished && response.destroy(), lastWriteMaxMs).unref();
  }
}

/** Looks in the user's list, because `find` would count as use of the session, and no token has to be stored. */
export async function sessionIsLive(
  session: Session | undefined,
  sessions: Pick<SessionStore, "list">,
): Promise<boolean> {
  if (!session) return false;
  const live = await sessions.list(session.userId).catch(() => []);
  return live.some(({ sessionId }) => sessionId === session.sessionId);
}
