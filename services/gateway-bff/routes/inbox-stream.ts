/**
 * A player's inbox, live: notification's stream for the user of the session, event by event, nothing kept here.
 *
 * It lasts no longer than the session, which a suspension ends too: nothing is told without asking first whether it lives,
 * and it is asked every few seconds besides. When nothing can be known, the stream ends. To follow is not to use: a session
 * that is not used ends although a stream is open. Whoever leaves, the other side is let go at once; a client that reads
 * slowly slows its own stream and nothing else.
 */
import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type Authenticate, type HttpApp, requires, type Signer } from "@todoke/http";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { type Language, languageOf } from "../language.ts";
import { upstreamProblems } from "../problems.ts";
import type { SessionStore } from "../sessions/index.ts";
import { frameInOneLanguage, framesOf, isTelling } from "./inbox-frames.ts";
import { openEventStream } from "./inbox-upstream.ts";
import { userOf } from "./user-of.ts";

export interface InboxStreamDeps {
  readonly authenticate: Authenticate;
  readonly sessions: Pick<SessionStore, "list">;
  /** Undefined where notification is not deployed. */
  readonly notificationUrl: URL | undefined;
  readonly tokenFor: Signer["tokenFor"];
  /** How often the session is looked at. */
  readonly sessionCheckMs?: number;
  /** How long notification may take to begin. */
  readonly streamTimeoutMs?: number;
}

const EventId = Type.String({ pattern: "^[0-9a-f.-]{1,60}$", description: "The id of the last event that was seen." });
const Headers = Type.Object({ "last-event-id": Type.Optional(EventId) });
// For a browser's first connection, which cannot have the header. When it comes back it has both, and the header counts.
const Query = Type.Object({ last_event_id: Type.Optional(EventId) });

// Notification says every 15 s that a stream lives. One that is silent for longer than this does not.
const silenceMaxMs = 45_000;
/** How long a client may take to read the last of its stream. */
const farewellMs = 1_000;

export function inboxStreamRoute(app: HttpApp, deps: InboxStreamDeps): void {
  const open = new Set<AbortController>();
  // Before the server waits for what it still owes: a stream would owe for ever.
  app.addHook("preClose", async () => {
    for (const leave of open) leave.abort();
  });
  const users = requires(deps.authenticate, { user: "any" });
  app.get(
    "/v1/inbox/stream",
    {
      ...users,
      config: { ...users.config, longLived: true },
      exposeHeadRoute: false, // It would open a stream that nobody reads.
      schema: {
        operationId: "followInbox",
        summary: "What the player is told, as it happens (server-sent events)",
        headers: Headers,
        querystring: Query,
        produces: ["text/event-stream"],
        response: { 200: Type.String() },
      },
    },
    async (request, reply) => {
      const leave = new AbortController();
      reply.raw.once("close", () => leave.abort());
      if (reply.raw.destroyed) return reply.hijack(); // The client has gone while it was asked who it is.
      open.add(leave);
      try {
        const language = languageOf(request);
        const lastEventId = request.headers["last-event-id"] ?? request.query.last_event_id;
        const events = await openFor(request, { ...deps, lastEventId, leave });
        reply.headers(headersIn(language)).hijack();
        const response = reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders);
        response.flushHeaders(); // With the first event, a quiet inbox would leave its client in doubt for 15 s.
        const isLiving = () => sessionLives(request, deps.sessions);
        using _ = endingWith(isLiving, { ...deps, leave });
        await pass(events, { response, language, isLiving, leave });
      } finally {
        open.delete(leave);
      }
      return reply;
    },
  );
}

const headersIn = (language: Language) => ({
  "content-type": "text/event-stream",
  "content-language": language,
  vary: "accept-language",
  "x-accel-buffering": "no", // Proxies that would collect events before they pass them on are told not to.
});

interface Opening extends Pick<InboxStreamDeps, "notificationUrl" | "tokenFor" | "streamTimeoutMs"> {
  readonly lastEventId: string | undefined;
  readonly leave: AbortController;
}

async function openFor(request: FastifyRequest, opening: Opening) {
  const { notificationUrl, tokenFor, streamTimeoutMs, lastEventId, leave } = opening;
  if (!notificationUrl) throw upstreamProblems.notification.unavailable("notification is not deployed here");
  const user = userOf(request);
  return openEventStream({
    url: new URL(`/v1/users/${encodeURIComponent(user.userId)}/inbox/stream`, notificationUrl),
    token: await tokenFor("notification", user),
    requestId: request.id,
    ...(lastEventId !== undefined && { lastEventId }),
    ...(streamTimeoutMs !== undefined && { timeoutMs: streamTimeoutMs }),
    leave,
  });
}

interface Passing {
  readonly response: ServerResponse;
  readonly language: Language;
  readonly isLiving: () => Promise<boolean>;
  readonly leave: AbortController;
}

/** Until either side ends, or `leave` says so. However it ends, the client comes back with the last id that it saw. */
async function pass(events: AsyncIterable<Uint8Array>, passing: Passing): Promise<void> {
  const { response, language, isLiving, leave } = passing;
  const silence = setTimeout(() => leave.abort(), silenceMaxMs);
  try {
    for await (const frames of framesOf(events)) {
      silence.refresh();
      if (frames.some(isTelling) && !(await isLiving())) break;
      const isTaken = response.write(frames.map((frame) => frameInOneLanguage(frame, language)).join(""));
      if (!isTaken) await once(response, "drain", { signal: leave.signal });
    }
  } catch {
    // Cut off, or told to leave.
  } finally {
    clearTimeout(silence);
    leave.abort();
    response.end(`retry: ${Math.round(500 + Math.random() * 2_000)}\n\n`);
    setTimeout(() => !response.writableFinished && response.destroy(), farewellMs).unref();
  }
}

/** Looked up in the user's list and not by `find`, which would be to use it; so nobody has to keep its token either. */
async function sessionLives({ session }: FastifyRequest, sessions: InboxStreamDeps["sessions"]): Promise<boolean> {
  if (!session) return false;
  const living = await sessions.list(session.userId).catch(() => []);
  return living.some(({ sessionId }) => sessionId === session.sessionId);
}

interface Ending extends Pick<InboxStreamDeps, "sessionCheckMs"> {
  readonly leave: AbortController;
}

function endingWith(isLiving: () => Promise<boolean>, { sessionCheckMs = 5_000, leave }: Ending): Disposable {
  const timer = setInterval(async () => {
    if (!(await isLiving())) leave.abort();
  }, sessionCheckMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
