/**
 * A process of the service that drains a full queue. It keeps running between rounds, so that it is warm: each round fills the
 * queue of a new mode and then adds that mode to the rules file.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import type { Contender } from "../measure.ts";
import { startService } from "../start-service.ts";
import { fill, type MatchmakingEngines, openDatabase, openQueue, type Store } from "./queues.ts";

export interface DrainOptions {
  readonly name: string;
  readonly store: Store;
  /** Default: all roles. */
  readonly roles?: string;
  readonly until: "recorded" | "published";
  readonly tickets: number;
  readonly engines: MatchmakingEngines;
  /** Folder of the rules file. */
  readonly folder: string;
}

const countSql = {
  recorded: `select count(*)::int as done, extract(epoch from clock_timestamp())::float8 as now from matches`,
  published: `select count(*)::int as done, extract(epoch from clock_timestamp())::float8 as now from outbox_events
               where published_at is not null`,
};
const firstMatchSql = `select extract(epoch from min(matched_at))::float8 as first from matches`;

let contenderCount = 0;

export async function drainContender({ name, store, roles, until, tickets, engines, folder }: DrainOptions) {
  const started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const db = database.open("matchmaking", 1);
  const { queue } = started.use(openQueue(store, { engines, database }));
  const [modePrefix, path] = [`drain${++contenderCount}`, join(folder, `rules${contenderCount}.yaml`)];
  const openMode = (mode: string) => writeFile(path, `modes:\n  ${mode}: {}\n`);
  await openMode("unused");
  const env = { DATABASE_URL: database.url, EVENT_BUS_URL: database.url, REDIS_URL: engines.redisUrl };
  const settings = { MATCHMAKING_STORE: store, MATCHMAKING_RULES: path, ...(roles && { MATCHMAKING_ROLES: roles }) };
  started.use(await startService("matchmaking", { ...env, ...settings }));

  let rounds = 0;
  let seconds = Number.NaN;
  const contender: Contender = {
    name,
    async before() {
      await db.query("truncate matches, ticket_ends, outbox_events");
      await fill(queue, { mode: `${modePrefix}-${++rounds}`, count: tickets });
    },
    async run() {
      await openMode(`${modePrefix}-${rounds}`);
      const endedAt = await waitUntilDone(db, countSql[until], tickets / 2);
      // The clock starts with the first match, because the service reads the file only once per second.
      const { rows } = await db.query<{ first: number }>(firstMatchSql);
      seconds = endedAt - (rows[0]?.first ?? Number.NaN);
      return tickets / 2;
    },
    seconds: () => seconds,
  };
  return { contender, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Returns the database's time at which all was done. It counts rarely at first, because counting costs CPU. */
async function waitUntilDone(db: Db, sql: string, wanted: number): Promise<number> {
  const startedAt = performance.now();
  for (let waitedMs = 0; waitedMs < 120_000; waitedMs = performance.now() - startedAt) {
    const { rows } = await db.query<{ done: number; now: number }>(sql);
    const { done = 0, now = Number.NaN } = rows[0] ?? {};
    if (done === wanted) return now;
    const leftMs = (waitedMs * (wanted - done)) / Math.max(done, 1);
    await sleep(Math.min(Math.max(leftMs / 2, 20), 200));
  }
  throw new Error(`not all of ${wanted} matches were done within two minutes`);
}
