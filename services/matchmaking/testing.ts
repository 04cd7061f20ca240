/** Test harness of the service: processes on one database and one queue, and players who call them. */
import { hash, randomBytes, randomUUID } from "node:crypto";
import { type Authenticate, buildHttpApp, problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { connectRedis } from "@todoke/redis";
import { createCommands } from "./deps.ts";
import type { TicketQueue } from "./queue/index.ts";
import { openPostgresQueue } from "./queue/postgres/index.ts";
import { openRedisQueue } from "./queue/redis/redis-queue.ts";
import { ticketIds } from "./queue/testing.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { builtInRules, type ModeRules } from "./rules/index.ts";
import { openTestDatabase } from "./store/testing.ts";
import { startRecorder } from "./workers/recorder.ts";

/** Takes the caller's name from the Authorization header. */
const authenticate: Authenticate = ({ headers }) => {
  const [, kind, id = ""] = /^Bearer (user|staff|key|service):(\S+)$/.exec(headers.authorization ?? "") ?? [];
  if (kind === "user") return { kind, name: `user:${id}`, userId: id, roles: ["USER"] };
  if (kind === "staff") return { kind: "user", name: `user:${id}`, userId: id, roles: ["VIEWER"] };
  if (kind === "key") return { kind, name: id, scopes: id === "game" ? ["matchmaking:write"] : ["read"] };
  if (kind === "service") return { kind, name: `service:${id}` };
  throw problems.unauthenticated("no caller");
};

/** An ID with an unkeyed proof, as earlier versions made them. */
export function unkeyedId(mode: string, userId: string): string {
  const random = randomBytes(12);
  const proof = hash("sha256", JSON.stringify([mode, userId, random.toString("hex")]), "buffer").subarray(0, 9);
  return `${mode}.${Buffer.concat([random, proof]).toString("base64url")}`;
}

export interface Call {
  readonly as?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: unknown;
}

/** With a Redis URL the queue is in Redis, under a key prefix of its own. */
export async function createHarness({ redisUrl }: { readonly redisUrl?: string } = {}) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await openTestDatabase());
  const keyPrefix = `test:${randomUUID()}`;
  let current = await builtInRules();
  const rules = () => current;

  /** The queue of another process. */
  function openQueue(db: Db = t.open()): TicketQueue {
    const shared = { db, outbox: openOutbox(), ids: ticketIds };
    if (redisUrl === undefined) return parts.use(openPostgresQueue(shared));
    const onError = () => {};
    // A slow server must not count as unavailable in these tests.
    const link = parts.use(connectRedis({ url: redisUrl, onError, requestTimeoutMs: 60_000 }));
    const recorder = parts.use(
      startRecorder({ ...shared, link, keyPrefix, modes: () => [...current.modes.keys()], onError, pollMs: 10 }),
    );
    return parts.use(openRedisQueue({ ...shared, link, keyPrefix, onError, onEnded: recorder.wake }));
  }

  /** Another process of the service. */
  async function process() {
    const queue = openQueue();
    const app = await buildHttpApp({ title: "matchmaking", version: "0", log: { level: "silent" } });
    parts.defer(async () => void (await app.close()));
    const joins: string[] = [];
    const onJoined = (mode: string) => void joins.push(mode);
    matchmakingRoutes(app, {
      authenticate,
      ...createCommands({
        db: t.open(),
        queue,
        ids: ticketIds,
        rules,
        modes: () => [...current.modes.keys()],
        onJoined,
      }),
    });

    const call = (method: "GET" | "POST" | "DELETE", url: string, { as, headers, payload }: Call = {}) =>
      app.inject({
        method,
        url: url.startsWith("/v1/") ? url : `/v1/matchmaking${url}`,
        headers: {
          ...(as && { authorization: `Bearer ${as.includes(":") ? as : `user:${as}`}` }),
          ...(payload !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(payload !== undefined && { payload: typeof payload === "string" ? payload : JSON.stringify(payload) }),
      });

    const join = (as: string, mode: string, payload: unknown = {}, key: string = randomUUID()) =>
      call("POST", `/queues/${mode}/tickets`, { as, payload, headers: { "idempotency-key": key } });

    return {
      app,
      queue,
      call,
      join,
      /** The modes of new tickets, as reported to the matcher. */
      joins,
      ticketOf: async (as: string, mode: string, payload?: unknown): Promise<string> =>
        (await join(as, mode, payload)).json().ticket_id,
      show: async (as: string, ticketId: string) => (await call("GET", `/tickets/${ticketId}`, { as })).json(),
    };
  }

  return {
    ...t,
    process,
    openQueue,
    rules,
    /** Takes effect in every process at once. */
    changeRules(change: (modes: Map<string, ModeRules>) => void) {
      const modes = new Map(current.modes);
      change(modes);
      current = { modes, version: randomUUID() };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
