/**
 * The delay from join to match: 1,000 players join `duel` per second over HTTP, where the next player is always a match. It
 * runs from the request to the recorded match, to the published event, and to MATCHED in the response of polling clients.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { formatVerifyingKey, newSigningKey, openSigner, toVerifyingKey } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { sendAtRate } from "../load.ts";
import { clearProgress, median, percentile, round, showProgress } from "../measure.ts";
import type { Result } from "../report.ts";
import { startService } from "../start-service.ts";
import { type MatchmakingEngines, openDatabase, type Store, storeLabels, stores } from "./queues.ts";

const load = { perSecond: 1_000, seconds: 20 };
// Polling clients join too. More of them would be a load of their own.
const pollersPerSecond = 20;
const rounds = 3;
const path = "/v1/matchmaking/queues/duel/tickets";
const key = newSigningKey("bench");
const signer = openSigner({ issuer: "gateway-bff", key });

export async function joinToMatched(engines: MatchmakingEngines): Promise<Result> {
  const summary: Record<string, number> = {};
  for (const store of stores) Object.assign(summary, await joinToMatchedOn(store, engines));
  const rate = `${load.perSecond.toLocaleString("en")} joins per second for ${load.seconds} s`;
  return { title: `join over HTTP to match, ${rate}, medians of ${rounds}`, figures: [], summary };
}

async function joinToMatchedOn(store: Store, engines: MatchmakingEngines): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const db = database.open("matchmaking", 1);
  const { url } = started.use(
    await startService("matchmaking", {
      DATABASE_URL: database.url,
      EVENT_BUS_URL: database.url,
      REDIS_URL: engines.redisUrl,
      MATCHMAKING_STORE: store,
      TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
    }),
  );
  await measureJoins({ url, db, seconds: 5 }); // Warm-up: the first requests pay for compilation.
  const percentiles: { readonly label: string; readonly ms: number }[] = [];
  for (let n = 1; n <= rounds; n++) {
    showProgress(`join to matched on ${storeLabels[store]}, round ${n} of ${rounds}`);
    const delays = await measureJoins({ url, db, seconds: load.seconds });
    for (const [label, all] of Object.entries(delays))
      for (const share of [50, 99])
        percentiles.push({ label: `${label}, p${share}, ms`, ms: percentile(all, share / 100) });
  }
  clearProgress();
  const byLabel = [...Map.groupBy(percentiles, ({ label }) => `${storeLabels[store]}, ${label}`)];
  return Object.fromEntries(byLabel.map(([label, each]) => [label, round(median(each.map(({ ms }) => ms)))]));
}

interface Player {
  readonly userId: string;
  readonly token: string;
}

/** Tokens are valid for less than a minute, so they are created before each round. */
const createPlayers = (count: number): Promise<Player[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const userId = `u_${randomUUID()}`;
      return { userId, token: await signer.tokenFor("matchmaking", { userId, roles: ["USER"] }) };
    }),
  );

/** Delays in milliseconds, by label. */
async function measureJoins({
  url,
  db,
  seconds,
}: {
  url: string;
  db: Db;
  seconds: number;
}): Promise<Record<string, number[]>> {
  const players = await createPlayers(load.perSecond * seconds);
  const pollers = await createPlayers(pollersPerSecond * seconds);
  const sentAt = new Map<string, number>();
  const nextRequest = () => {
    const { userId, token } = players[sentAt.size] as Player;
    sentAt.set(userId, Date.now());
    return (
      `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\nIdempotency-Key: ${userId}\r\n` +
      `Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
    );
  };
  const startedAt = performance.now();
  const [polled] = await Promise.all([
    pollAll(url, pollers),
    sendAtRate({ url, nextRequest, perSecond: load.perSecond, seconds }),
  ]);
  const lateSeconds = (performance.now() - startedAt) / 1_000 - seconds;
  if (lateSeconds > 1)
    throw new Error(`the joins of ${seconds} s took ${lateSeconds.toFixed(1)} s longer: the rate was not constant`);
  return { ...(await databaseDelays(db, sentAt)), "client sees MATCHED": polled };
}

/** All clocks are of one machine. The event row is the last row before the commit. */
async function databaseDelays(db: Db, sentAt: ReadonlyMap<string, number>) {
  const delaysSql = `
    select e.user_id, extract(epoch from o.created_at)::float8 * 1000 as recorded,
           extract(epoch from m.published_at)::float8 * 1000 as stored
      from ticket_ends e
      join outbox_events o on o.aggregate_key = e.match_id::text
      join todoke_bus.bus_messages m on m.event_id = o.event_id
     where e.user_id = any($1)`;
  // One player may be left without an opponent until the next round.
  const expected = sentAt.size - 1;
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(100)) {
    const { rows } = await db.query<{ user_id: string; recorded: number; stored: number }>(delaysSql, [
      [...sentAt.keys()],
    ]);
    if (rows.length < expected) continue;
    const delaysTo = (at: "recorded" | "stored") =>
      rows.map((row) => row[at] - (sentAt.get(row.user_id) ?? Number.NaN));
    return { recorded: delaysTo("recorded"), "event published": delaysTo("stored") };
  }
  throw new Error(`not all of ${expected} players were matched within a minute`);
}

/** Joins one after the other; each polls until it sees MATCHED or times out. */
async function pollAll(url: string, pollers: readonly Player[]): Promise<number[]> {
  const took: number[] = [];
  const polls: Promise<void>[] = [];
  for (const poller of pollers) {
    polls.push(
      pollUntilMatched(url, poller).then((ms) => {
        if (ms !== undefined) took.push(ms);
      }),
    );
    await sleep(1_000 / pollersPerSecond);
  }
  await Promise.all(polls);
  return took;
}

const pollTimeoutMs = 5_000;

async function pollUntilMatched(url: string, { userId, token }: Player): Promise<number | undefined> {
  const authorization = `Bearer ${token}`;
  const startedAt = performance.now();
  const headers = { authorization, "idempotency-key": userId, "content-type": "application/json" };
  const joined = await fetch(`${url}${path}`, { method: "POST", headers, body: "{}" });
  const { ticket_id: ticketId } = (await joined.json()) as { ticket_id: string };
  while (performance.now() - startedAt < pollTimeoutMs) {
    const found = await fetch(`${url}/v1/matchmaking/tickets/${ticketId}`, { headers: { authorization } });
    const { status } = (await found.json()) as { status: string };
    if (status === "MATCHED") return performance.now() - startedAt;
    await sleep(1);
  }
  return undefined; // The last player has no opponent.
}
