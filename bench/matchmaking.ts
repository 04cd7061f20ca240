/**
 * Matchmaking on Redis and on PostgreSQL: matches per second against a bare Lua script, the delay from join to match, the
 * cost of a long queue, and the duration of one forming round.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bareScripts } from "./matchmaking/bare-script.ts";
import { drainContender } from "./matchmaking/drain-contender.ts";
import { formingRound } from "./matchmaking/forming-round.ts";
import { joinToMatched } from "./matchmaking/join-to-matched.ts";
import { longQueue } from "./matchmaking/long-queue.ts";
import { fill, type MatchmakingEngines, openDatabase, openQueue, terms } from "./matchmaking/queues.ts";
import { type Contender, measureInTurns, ratio } from "./measure.ts";
import type { Result } from "./report.ts";

const tickets = 40_000;

export async function matchmaking(engines: MatchmakingEngines): Promise<Result[]> {
  return [
    await matchesPerSecond(engines),
    await joinToMatched(engines),
    await longQueue(engines),
    await formingRound(engines),
  ];
}

/** Drains a full queue. Each contender does more than the one before it. */
async function matchesPerSecond(engines: MatchmakingEngines): Promise<Result> {
  await using started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "todoke-bench-"));
  started.defer(() => rm(folder, { recursive: true }));
  const bare = started.use(bareScripts(engines.redisUrl));
  const drain = async (options: Omit<Parameters<typeof drainContender>[0], "engines" | "folder" | "tickets">) =>
    started.use(await drainContender({ ...options, engines, folder, tickets })).contender;
  const apart = "api,matcher,recorder,maintenance";
  const contenders = [
    bare.oneMatchPerCall,
    bare.fiftyMatchesPerCall,
    await scriptAlone(engines, started),
    await drain({ name: "Redis, matches recorded in PostgreSQL", store: "redis", roles: apart, until: "recorded" }),
    await drain({ name: "Redis, end to end: every MatchMade published", store: "redis", until: "published" }),
    await drain({ name: "PostgreSQL, end to end", store: "postgres", until: "published" }),
  ];
  for (const { before, run } of contenders) {
    await before?.();
    await run(); // Warm-up: the first requests pay for compilation.
  }
  const figures = await measureInTurns("matches", contenders);
  const [two, fifty, script, recorded, onRedis, onPostgres] = figures;
  return {
    title: `matches per second from ${tickets.toLocaleString("en")} queued tickets, one against one, first come first served`,
    figures,
    summary: {
      "queue script / bare script, 50 matches per call": ratio(script, fifty),
      "Redis, recorded / bare script": ratio(recorded, two),
      "Redis, end to end / bare script": ratio(onRedis, two),
      "PostgreSQL, end to end / bare script": ratio(onPostgres, two),
      "Redis / PostgreSQL, end to end": ratio(onRedis, onPostgres),
    },
    targets: { "Redis, end to end / bare script": "at least 0.05, aim 0.2" },
  };
}

/** The part of the work that Redis does: matches are not recorded. */
async function scriptAlone(engines: MatchmakingEngines, started: AsyncDisposableStack): Promise<Contender> {
  const database = started.use(await openDatabase(engines.postgresUrl));
  const { queue } = started.use(openQueue("redis", { engines, database, backlogMax: tickets }));
  let rounds = 0;
  return {
    name: "queue script alone, 50 matches per call",
    before: () => fill(queue, { mode: `script${++rounds}`, count: tickets }),
    async run() {
      let all = 0;
      for (let made = -1; made !== 0; all += made)
        ({ made } = await queue.matchFifo(`script${rounds}`, { ...terms, players: 2, matchesMax: 100 }));
      if (all !== tickets / 2) throw new Error(`${all} matches were made of ${tickets} tickets`);
      return all;
    },
  };
}
