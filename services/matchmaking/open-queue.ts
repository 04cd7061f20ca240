/** Where tickets wait: in Redis when there is one, else in PostgreSQL. How they end is on record in PostgreSQL either way. */
import type { Db } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { Wakeups } from "@todoke/kernel/worker";
import { openRedisLink, scriptOf } from "@todoke/redis";
import type { TicketQueue } from "./queue/index.ts";
import { openPostgresQueue } from "./queue/postgres/index.ts";
import { keepRecording, openRedisQueue, type Recorder } from "./queue/redis/index.ts";
import { tellDependencyError, tellRecorded, watchEnds } from "./telemetry.ts";
import type { TicketIds } from "./ticket-id.ts";

export interface Outside {
  readonly db: Db;
  readonly outbox: Outbox;
  readonly ids: TicketIds;
  readonly wakeups: Wakeups;
  /** What is signalled when Redis has an end that is not on record yet. */
  readonly endsTopic: string;
  /** Whether this process moves ends from Redis to PostgreSQL. */
  readonly records: boolean;
  readonly modes: () => readonly string[];
  /** Hears that tickets wait again, because a match of theirs did not come about. */
  readonly onGivenBack: (mode: string) => void;
  use<T extends AsyncDisposable>(part: T): T;
  addReadinessCheck(name: string, check: () => Promise<unknown>): void;
  onError(error: unknown): void;
}

const nothing = scriptOf("return 1");

export function openQueue(redisUrl: string | undefined, outside: Outside): TicketQueue {
  const { db, outbox, ids, use } = outside;
  if (redisUrl === undefined) return use(openPostgresQueue({ db, outbox, ids, onRecorded: tellRecorded }));
  return openInRedis(redisUrl, outside);
}

function openInRedis(url: string, outside: Outside): TicketQueue {
  const { db, outbox, wakeups, endsTopic: topic, records, modes, onGivenBack, use, addReadinessCheck } = outside;
  const onError = (error: unknown) => {
    tellDependencyError(error);
    outside.onError(error);
  };
  const link = use(openRedisLink({ url, onError: outside.onError }));
  addReadinessCheck("redis", () => link.run(nothing, { keys: [], arguments: [] }));
  const about = { link, db, outbox, onError, onRecorded: tellRecorded };
  let recorder: Recorder | undefined;
  if (records) {
    recorder = use(keepRecording({ ...about, modes, wakeups, topic, onGivenBack }));
    use(watchEnds(() => recorder?.backlog() ?? Promise.resolve(new Map()), outside.onError));
  }
  const onEnded = (mode: string) => {
    recorder?.wake(mode);
    wakeups.signal(topic);
  };
  return use(openRedisQueue({ ...about, ids: outside.ids, onEnded }));
}
