/**
 * A process of the service that drains a queue which was filled before. It runs all the time, warm, as in production: its
 * rules have another mode for every round, which they take in once the queue of it is full.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "@todoke/kernel/db";
import type { Contender } from "../measure.ts";
import { startService } from "../pipeline.ts";
import { type Engines, fill, openDatabase, openQueue, type Store } from "./queues.ts";

export interface Draining {
  readonly name: string;
  readonly store: Store;
  /** All of them if not given. */
  readonly roles?: string;
  readonly until: "recorded" | "published";
  readonly tickets: number;
  readonly engines: Engines;
  /** For its rules. */
  readonly folder: string;
}

const countText = {
  recorded: `select count(*)::int as done, extract(epoch from clock_timestamp())::float8 as now from matches`,
  published: `select count(*)::int as done, extract(epoch from clock_timestamp())::float8 as now from outbox_events
               where published_at is not null`,
};
const firstText = `select extract(epoch from min(matched_at))::float8 as first from matches`;

let made = 0;

export async function draining({ name, store, roles, until, tickets, engines, folder }: Draining) {
  const started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const db = database.open("matchmaking", 1);
  const { queue } = started.use(openQueue(store, { engines, database }));
  const [kind, path] = [`drain${++made}`, join(folder, `rules${made}.yaml`)];
  const openMode = (mode: string) => writeFile(path, `modes:\n  ${mode}: {}\n`);
  await openMode("nobody");
  const env = { DATABASE_URL: database.url, EVENT_BUS_URL: database.url, REDIS_URL: engines.redisUrl };
  const choices = { MATCHMAKING_STORE: store, MATCHMAKING_RULES: path, ...(roles && { MATCHMAKING_ROLES: roles }) };
  started.use(await startService("matchmaking", { ...env, ...choices }));

  let rounds = 0;
  let seconds = Number.NaN;
  const contender: Contender = {
    name,
    async before() {
      await db.query("truncate matches, ticket_ends, outbox_events");
      await fill(queue, { mode: `${kind}-${++rounds}`, count: tickets });
    },
    async run() {
      await openMode(`${kind}-${rounds}`);
      const endedAt = await allDone(db, countText[until], tickets / 2);
      // Its clock starts with the first match: the file is looked at once a second.
      const { rows } = await db.query<{ first: number }>(firstText);
      seconds = endedAt - (rows[0]?.first ?? Number.NaN);
      return tickets / 2;
    },
    seconds: () => seconds,
  };
  return { contender, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** When all was seen to be done, by the database's clock. Asked seldom at first: to count is work that the others do not have. */
async function allDone(db: Db, text: string, wanted: number): Promise<number> {
  const startedAt = performance.now();
  for (let waitedMs = 0; waitedMs < 120_000; waitedMs = performance.now() - startedAt) {
    const { rows } = await db.query<{ done: number; now: number }>(text);
    const { done = 0, now = Number.NaN } = rows[0] ?? {};
    if (done === wanted) return now;
    const leftMs = (waitedMs * (wanted - done)) / Math.max(done, 1);
    await sleep(Math.min(Math.max(leftMs / 2, 20), 200));
  }
  throw new Error(`not all of ${wanted} matches were done within two minutes`);
}
