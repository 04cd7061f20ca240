/**
 * Matchmaking: how many matches a second, beside a bare script that matches two; how long a player waits who has somebody
 * to play with; what a long queue costs; and how long a round of forming takes. On Redis and on PostgreSQL.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ceilings } from "./matchmaking/bare-script.ts";
import { draining } from "./matchmaking/draining.ts";
import { formingRound } from "./matchmaking/forming-round.ts";
import { joinToMatched } from "./matchmaking/join-to-matched.ts";
import { longQueue } from "./matchmaking/long-queue.ts";
import { type Engines, fill, openDatabase, openQueue, terms } from "./matchmaking/queues.ts";
import { type Contender, race } from "./measure.ts";
import { ratio } from "./pipeline.ts";
import type { Result } from "./report.ts";

const tickets = 40_000;

export async function matchmaking(engines: Engines): Promise<Result[]> {
  return [
    await matchesPerSecond(engines),
    await joinToMatched(engines),
    await longQueue(engines),
    await formingRound(engines),
  ];
}

/** From a full queue to an empty one; each contender does what the one before it does, and more. */
async function matchesPerSecond(engines: Engines): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "todoke-bench-"));
  started.defer(() => rm(folder, { recursive: true }));
  const bare = started.use(ceilings(engines.redisUrl));
  const drain = async (about: Omit<Parameters<typeof draining>[0], "engines" | "folder" | "tickets">) =>
    started.use(await draining({ ...about, engines, folder, tickets })).contender;
  const apart = "api,matcher,recorder,maintenance";
  const contenders = [
    bare.matchTwo,
    bare.matchFifty,
    await scriptAlone(engines, started),
    await drain({ name: "Redis, matches on record in PostgreSQL", store: "redis", roles: apart, until: "recorded" }),
    await drain({ name: "Redis, end to end: every MatchMade stored by the bus", store: "redis", until: "published" }),
    await drain({ name: "PostgreSQL, end to end", store: "postgres", until: "published" }),
  ];
  for (const { before, run } of contenders) {
    await before?.();
    await run(); // Warm: the first thousands pay for the compiler.
  }
  const figures = await race("matches", contenders);
  const [two, fifty, script, recorded, onRedis, onPostgres] = figures;
  return {
    title: `matches a second from ${tickets.toLocaleString("en")} tickets that wait, one against one in the order of waiting`,
    figures,
    ratios: {
      "the queue's script / a bare script, 50 matches a call": ratio(script, fifty),
      "Redis, on record / a bare script": ratio(recorded, two),
      "Redis, end to end / a bare script": ratio(onRedis, two),
      "PostgreSQL, end to end / a bare script": ratio(onPostgres, two),
      "Redis / PostgreSQL, end to end": ratio(onRedis, onPostgres),
    },
    wanted: { "Redis, end to end / a bare script": "at least 0.05, aim 0.2" },
  };
}

/** What Redis does of it: nobody records the matches. */
async function scriptAlone(engines: Engines, started: AsyncDisposableStack): Promise<Contender> {
  const database = started.use(await openDatabase(engines.postgresUrl));
  const { queue } = started.use(openQueue("redis", { engines, database, backlogMax: tickets }));
  let rounds = 0;
  return {
    name: "the queue's script alone, 50 matches a call",
    before: () => fill(queue, { mode: `script${++rounds}`, count: tickets }),
    async run() {
      let all = 0;
      for (let made = -1; made !== 0; all += made)
        ({ made } = await queue.matchInOrder(`script${rounds}`, { ...terms, players: 2, matchesMax: 100 }));
      if (all !== tickets / 2) throw new Error(`${all} matches were made of ${tickets} tickets`);
      return all;
    },
  };
}
