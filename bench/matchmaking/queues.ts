/** Queues as a process of the service has them, and players who wait in them. */
import { randomUUID } from "node:crypto";
import { digestOf } from "@todoke/kernel/idempotency";
import { openOutbox } from "@todoke/kernel/outbox";
import { migrate } from "@todoke/matchmaking";
import { openPostgresQueue } from "@todoke/matchmaking/queue/postgres";
import { openRedisQueue } from "@todoke/matchmaking/queue/redis";
import { type Recorder, startRecorder } from "@todoke/matchmaking/workers/recorder";
import { openRedisLink } from "@todoke/redis";
import { type BenchDatabase, openDatabase as openBenchDatabase } from "../databases.ts";

export interface Engines {
  readonly postgresUrl: string;
  readonly redisUrl: string;
}

export type Store = "redis" | "postgres";
export const stores = ["redis", "postgres"] as const satisfies readonly Store[];
export const nameOf: Readonly<Record<Store, string>> = { redis: "Redis", postgres: "PostgreSQL" };

export type Queue = ReturnType<typeof openPostgresQueue>;

/** What is written down with each match. */
export const terms = { rulesVersion: "bench", session: {} };

/** With the tables of matchmaking too. */
export async function openDatabase(postgresUrl: string): Promise<BenchDatabase> {
  const database = await openBenchDatabase(postgresUrl);
  await migrate({ DATABASE_URL: database.url }, { dryRun: false });
  return database;
}

interface QueueOptions {
  readonly engines: Engines;
  readonly database: BenchDatabase;
  /** Ends in these modes are brought to PostgreSQL; without them nobody does that. */
  readonly recordedModes?: readonly string[];
  /** So many ends may wait to be recorded; the service's own bound if not given. */
  readonly backlogMax?: number;
}

export interface OpenQueue extends AsyncDisposable {
  readonly queue: Queue;
  /** Resolves when every end of the mode is on record. */
  recorded(mode: string): Promise<void>;
}

export function openQueue(store: Store, { engines, database, recordedModes, backlogMax }: QueueOptions): OpenQueue {
  const parts = new AsyncDisposableStack();
  const about = { db: database.open("matchmaking", 8), outbox: openOutbox() };
  const opened = (queue: Queue, recorder?: Recorder): OpenQueue => ({
    queue: parts.use(queue),
    async recorded(mode) {
      while (recorder && (await recorder.backlog()).get(mode) !== 0);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  });
  if (store === "postgres") return opened(openPostgresQueue(about));
  const onError = (error: unknown) => console.error(error);
  const link = parts.use(openRedisLink({ url: engines.redisUrl, onError }));
  const recorder = recordedModes && parts.use(startRecorder({ ...about, link, modes: () => recordedModes, onError }));
  const onEnded = (mode: string) => recorder?.wake(mode);
  const bound = backlogMax === undefined ? {} : { backlogMax };
  return opened(openRedisQueue({ ...about, link, onError, onEnded, ...bound }), recorder);
}

interface Filling {
  readonly mode: string;
  readonly count: number;
  readonly attributes?: () => Readonly<Record<string, number>>;
  readonly heartbeatMs?: number;
}

const joiningAtOnce = 256;

/** Lets so many players join who never came before. */
export async function fill(queue: Pick<Queue, "join">, { mode, count, attributes, heartbeatMs }: Filling) {
  const heartbeat = heartbeatMs === undefined ? {} : { heartbeatMs };
  let left = count;
  const joining = async () => {
    while (left-- > 0) {
      const wish = { mode, partySize: 1, attributes: attributes?.() ?? {} };
      const userId = `u_${randomUUID()}`;
      const key = { scope: `user:${userId} POST ${mode}`, key: randomUUID(), requestHash: digestOf(wish) };
      await queue.join({ ...wish, key, userId, avoid: [], ticketMs: 600_000, ...heartbeat });
    }
  };
  await Promise.all(Array.from({ length: joiningAtOnce }, joining));
}
