/** What the tests of this service share: processes of it on one database and one queue, and players who call it. */
import { hash, randomBytes, randomUUID } from "node:crypto";
import { type Authenticate, buildHttpApp, problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { openOutbox } from "@todoke/kernel/outbox";
import { openRedisLink } from "@todoke/redis";
import { openCommands } from "./commands/index.ts";
import type { TicketQueue } from "./queue/index.ts";
import { openPostgresQueue } from "./queue/postgres/index.ts";
import { keepRecording, openRedisQueue } from "./queue/redis/index.ts";
import { ticketIds } from "./queue/testing.ts";
import { matchmakingRoutes } from "./routes/index.ts";
import { builtInRules, type ModeRules } from "./rules/index.ts";
import { freshDatabase } from "./store/testing.ts";

/** Stands for tokens and keys: the name of the caller as it is. */
const authenticate: Authenticate = ({ headers }) => {
  const [, kind, id = ""] = /^Bearer (user|key|service):(\S+)$/.exec(headers.authorization ?? "") ?? [];
  if (kind === "user") return { kind, name: `user:${id}`, userId: id, roles: ["USER"] };
  if (kind === "key") return { kind, name: id, scopes: id === "game" ? ["matchmaking:write"] : ["read"] };
  if (kind === "service") return { kind, name: `service:${id}` };
  throw problems.unauthenticated("who is calling?");
};

/** An ID as everybody could make one until the proof in it had a key. */
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

/** On Redis where its address is given; each test has a part of it for itself. */
export async function setup({ redisUrl }: { readonly redisUrl?: string } = {}) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await freshDatabase());
  const place = `test:${randomUUID()}`;
  let current = await builtInRules();
  const rules = () => current;

  /** The queue as another process has it. */
  function openQueue(db: Db = t.open()): TicketQueue {
    const about = { db, outbox: openOutbox(), ids: ticketIds };
    if (redisUrl === undefined) return parts.use(openPostgresQueue(about));
    const onError = () => {};
    // A server that is only slow is not away: no test here is about one that is silent.
    const link = parts.use(openRedisLink({ url: redisUrl, onError, answerWithinMs: 60_000 }));
    const recorder = parts.use(
      keepRecording({ ...about, link, place, modes: () => [...current.modes.keys()], onError, pollMs: 10 }),
    );
    return parts.use(openRedisQueue({ ...about, link, place, onError, onEnded: recorder.wake }));
  }

  /** Another process of the service. */
  async function process() {
    const queue = openQueue();
    const app = await buildHttpApp({ title: "matchmaking", version: "0", log: { level: "silent" } });
    parts.defer(async () => void (await app.close()));
    const joins: string[] = [];
    const onJoined = (mode: string) => void joins.push(mode);
    matchmakingRoutes(app, { authenticate, ...openCommands({ db: t.open(), queue, ids: ticketIds, rules, onJoined }) });

    const call = (method: "GET" | "POST" | "DELETE", url: string, { as, headers, payload }: Call = {}) =>
      app.inject({
        method,
        url: `/v1/matchmaking${url}`,
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
      /** Modes in which somebody has joined, as the matcher hears of them. */
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
    /** They hold from now on, at every process. */
    changeRules(change: (modes: Map<string, ModeRules>) => void) {
      const modes = new Map(current.modes);
      change(modes);
      current = { modes, version: randomUUID() };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
