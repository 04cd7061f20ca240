/** Queues as the service opens them, and tickets to fill them. */
import { randomUUID } from "node:crypto";
import { digestJson } from "@todoke/kernel/idempotency";
import { openOutbox } from "@todoke/kernel/outbox";
import { migrate } from "@todoke/matchmaking";
import { openPostgresQueue } from "@todoke/matchmaking/queue/postgres";
import { openRedisQueue } from "@todoke/matchmaking/queue/redis";
import { type Recorder, startRecorder } from "@todoke/matchmaking/workers/recorder";
import { connectRedis } from "@todoke/redis";
import { type BenchDatabase, openDatabase as openBenchDatabase } from "../databases.ts";

export interface MatchmakingEngines {
  readonly postgresUrl: string;
  readonly redisUrl: string;
}

export type Store = "redis" | "postgres";
export const stores = ["redis", "postgres"] as const satisfies readonly Store[];
export const storeLabels: Readonly<Record<Store, string>> = { redis: "Redis", postgres: "PostgreSQL" };

export type MatchQueue = ReturnType<typeof openPostgresQueue>;

/** Stored with each match. */
export const terms = { rulesVersion: "bench", session: {} };

export const openDatabase = (postgresUrl: string) => openBenchDatabase(postgresUrl, migrate);

interface QueueOptions {
  readonly engines: MatchmakingEngines;
  readonly database: BenchDatabase;
  /** Ticket ends in these modes are recorded in PostgreSQL. Default: none. */
  readonly recordedModes?: readonly string[];
  /** Most ticket ends that may wait for the recorder. Default: the service's own limit. */
  readonly backlogMax?: number;
}

export interface OpenQueue extends AsyncDisposable {
  readonly queue: MatchQueue;
  /** Resolves when every ticket end of the mode is recorded. */
  waitUntilRecorded(mode: string): Promise<void>;
}

export function openQueue(store: Store, { engines, database, recordedModes, backlogMax }: QueueOptions): OpenQueue {
  const parts = new AsyncDisposableStack();
  const storage = { db: database.open("matchmaking", 8), outbox: openOutbox() };
  const opened = (queue: MatchQueue, recorder?: Recorder): OpenQueue => ({
    queue: parts.use(queue),
    async waitUntilRecorded(mode) {
      while (recorder && (await recorder.backlog()).get(mode) !== 0);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  });
  if (store === "postgres") return opened(openPostgresQueue(storage));
  const onError = (error: unknown) => console.error(error);
  const link = parts.use(connectRedis({ url: engines.redisUrl, onError }));
  const recorder = recordedModes && parts.use(startRecorder({ ...storage, link, modes: () => recordedModes, onError }));
  const onEnded = (mode: string) => recorder?.wake(mode);
  const limits = backlogMax === undefined ? {} : { backlogMax };
  return opened(openRedisQueue({ ...storage, link, onError, onEnded, ...limits }), recorder);
}

interface FillOptions {
  readonly mode: string;
  readonly count: number;
  readonly attributes?: () => Readonly<Record<string, number>>;
  readonly heartbeatMs?: number;
}

const concurrentJoins = 256;

/** Adds `count` tickets of new players. */
export async function fill(queue: Pick<MatchQueue, "join">, { mode, count, attributes, heartbeatMs }: FillOptions) {
  const heartbeat = heartbeatMs === undefined ? {} : { heartbeatMs };
  let left = count;
  const joiner = async () => {
    while (left-- > 0) {
      const request = { mode, partySize: 1, attributes: attributes?.() ?? {} };
      const userId = `u_${randomUUID()}`;
      const key = { scope: `user:${userId} POST ${mode}`, key: randomUUID(), requestHash: digestJson(request) };
      await queue.join({ ...request, key, userId, avoid: [], ticketMs: 600_000, ...heartbeat });
    }
  };
  await Promise.all(Array.from({ length: concurrentJoins }, joiner));
}
