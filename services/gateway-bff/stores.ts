/** Where sessions and limits are kept: in Redis when there is one, else in PostgreSQL. */
import type { Db } from "@todoke/kernel/db";
import { openRedisLink, scriptOf } from "@todoke/redis";
import type { Settings } from "./config.ts";
import type { Limiter } from "./limits/index.ts";
import { postgresLimiter } from "./limits/postgres.ts";
import { redisLimiter } from "./limits/redis.ts";
import type { SessionStore } from "./sessions/index.ts";
import { postgresSessions } from "./sessions/postgres.ts";
import { redisSessions } from "./sessions/redis.ts";

export interface Stores {
  readonly sessions: SessionStore;
  readonly limiter: Limiter;
}

interface Outside {
  readonly db: Db;
  use<T extends AsyncDisposable>(part: T): T;
  addReadinessCheck(name: string, check: () => Promise<unknown>): void;
  onError(error: unknown): void;
}

type Chosen = Pick<Settings, "redisUrl" | "sessions">;

const nothing = scriptOf("return 1");

export function openStores({ redisUrl: url, sessions: settings }: Chosen, outside: Outside): Stores {
  const { db, use, addReadinessCheck, onError } = outside;
  if (url === undefined) return { sessions: use(postgresSessions(db, settings)), limiter: postgresLimiter(db) };
  // Each with a connection of its own: a flood that is being counted does not stand before those who are let in.
  const link = use(openRedisLink({ url, onError }));
  addReadinessCheck("redis", () => link.run(nothing, { keys: [], arguments: [] }));
  return { sessions: use(redisSessions({ url, settings, onError })), limiter: redisLimiter(link) };
}
