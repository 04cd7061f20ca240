/**
 * What has changed, as server-sent events: one stream for each visible window of the console (docs/adr/0159). An event names topics,
 * and has no data of them; the window reads its pages again with its own session. A stream has no history: after a lost connection
 * a window waits for `ready` and reads everything again.
 *
 * It lasts no longer than its session and its role, and does not count as use of the session.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { guarded, type HttpApp, hasStaffRole, problems } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Deps } from "../deps.ts";
import { sessionUser } from "../guard/session-user.ts";
import { accountInactive, credentialsAmbiguous } from "../problems.ts";
import { sessionIsLive } from "../user-inbox/pass-stream.ts";
import type { Watcher } from "../workers/watch-changes.ts";

export interface StaffStreamDeps extends Pick<Deps, "authenticate" | "sessions"> {
  readonly watcher: Watcher;
  readonly beatMs?: number;
  /** How often session and role are checked. */
  readonly checkMs?: number;
  readonly streamsMax?: number;
  readonly streamsOfUserMax?: number;
}

const idsMax = 4;

const StreamQuery = Type.Object({
  id: Type.Optional(
    Type.Union([
      Type.String({ minLength: 1, maxLength: 320 }),
      Type.Array(Type.String({ minLength: 1, maxLength: 320 }), { maxItems: idsMax }),
    ]),
  ),
  matchmaking: Type.Optional(Type.Literal("yes")),
});

export function staffStreamRoute(app: HttpApp, deps: StaffStreamDeps): void {
  const { authenticate, streamsMax = 500, streamsOfUserMax = 20 } = deps;
  const open = new Map<AbortController, string>();
  // Before the server waits for open responses: a stream would never end.
  app.addHook("preClose", async () => {
    for (const leave of open.keys()) leave.abort();
  });

  function rejectTooMany(userId: string): void {
    const own = [...open.values()].filter((each) => each === userId).length;
    if (own < streamsOfUserMax && open.size < streamsMax) return;
    throw problems.tooManyInFlight("too many windows of the console follow changes", { retryAfterSeconds: 30 });
  }

  const { config, ...guard } = guarded(
    authenticate,
    { staff: "VIEWER" },
    {
      // For the console of the same version only.
      hide: true,
      operationId: "followChanges",
      querystring: StreamQuery,
      refusals: [accountInactive, credentialsAmbiguous, problems.rateLimited],
    },
  );
  app.get(
    "/v1/admin/stream",
    { ...guard, config: { ...config, longLived: true }, exposeHeadRoute: false },
    async (request, reply) => {
      const { userId } = sessionUser(request);
      const leave = new AbortController();
      reply.raw.once("close", () => leave.abort());
      if (reply.raw.destroyed) return reply.hijack(); // The client left during authentication.
      rejectTooMany(userId);
      open.set(leave, userId);
      try {
        await follow(deps, { request, reply, leave });
      } finally {
        open.delete(leave);
      }
      return reply;
    },
  );
}

const streamHeaders = {
  "content-type": "text/event-stream",
  "x-accel-buffering": "no", // Keeps proxies from buffering events.
  connection: "close", // A stop of the gateway does not wait for the next request of the connection.
};

interface Stream {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly leave: AbortController;
}

async function follow(deps: StaffStreamDeps, { request, reply, leave }: Stream): Promise<void> {
  const { id = [], matchmaking } = request.query as { id?: string | string[]; matchmaking?: "yes" };
  reply.headers(streamHeaders).hijack();
  const response = reply.raw.writeHead(200, reply.getHeaders() as Record<string, string>);
  response.flushHeaders();
  const pending = new Set<string>();
  const write = (event: string, data: unknown) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  // A window that does not read gets one event for everything that has changed meanwhile.
  const flush = () => {
    if (pending.size === 0 || response.writableNeedDrain) return;
    write("changed", [...pending]);
    pending.clear();
  };
  response.on("drain", flush);
  const beat = setInterval(() => !response.writableNeedDrain && write("beat", {}), deps.beatMs ?? 15_000);
  const leaveWatcher = deps.watcher.join({
    ids: [id].flat(),
    user: sessionUser(request),
    watchesMatchmaking: matchmaking === "yes",
    onReady: () => write("ready", {}),
    onChanged(topics) {
      for (const topic of topics) pending.add(topic);
      flush();
    },
  });
  try {
    await untilOver(deps, request, leave.signal);
  } finally {
    leaveWatcher();
    clearInterval(beat);
    response.end();
    setTimeout(() => !response.writableFinished && response.destroy(), lastWriteMaxMs).unref();
  }
}

/** How long a window may take to read the end of its stream. */
const lastWriteMaxMs = 1_000;

/** Until the window leaves, or its session or role has ended. */
async function untilOver(
  { sessions, checkMs = 5_000 }: StaffStreamDeps,
  request: FastifyRequest,
  left: AbortSignal,
): Promise<void> {
  const { userId } = sessionUser(request);
  const mayFollow = async () => {
    const [isLive, roles] = await Promise.all([
      sessionIsLive(request.session, sessions),
      sessions.getRoles(userId).catch(() => []),
    ]);
    return isLive && hasStaffRole(roles, "VIEWER");
  };
  do await sleep(checkMs, undefined, { signal: left }).catch(() => {});
  while (!left.aborted && (await mayFollow()));
}
