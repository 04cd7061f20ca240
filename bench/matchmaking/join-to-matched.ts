/**
 * How long a player waits who has somebody to play with: a thousand join every second over HTTP, in `duel`, where whoever
 * comes next is the match. Counted from the request being sent to the match being recorded, to its event being stored by
 * the bus, and, by some who ask all the time, to being told MATCHED.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { formatVerifyingKey, newSigningKey, openSigner, toVerifyingKey } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { steadily } from "../load.ts";
import { median, percentile } from "../measure.ts";
import { round, startService } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { type Engines, nameOf, openDatabase, type Store, stores } from "./queues.ts";

const load = { perSecond: 1_000, seconds: 20 };
// They join beside the others. More of them would be a load of their own.
const askingPerSecond = 20;
const rounds = 3;
const path = "/v1/matchmaking/queues/duel/tickets";
const key = newSigningKey("bench");
const signer = openSigner({ issuer: "gateway-bff", key });

export async function joinToMatched(engines: Engines): Promise<Result> {
  const ratios: Record<string, number> = {};
  for (const store of stores) Object.assign(ratios, await joinToMatchedOn(store, engines));
  const rate = `${load.perSecond.toLocaleString("en")} joins a second for ${load.seconds} s`;
  return { title: `from joining over HTTP to being matched, ${rate}, medians of ${rounds}`, figures: [], ratios };
}

async function joinToMatchedOn(store: Store, engines: Engines): Promise<Record<string, number>> {
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
  await play({ url, db, seconds: 5 }); // Warm: the first thousands pay for the compiler.
  const taken: { readonly what: string; readonly ms: number }[] = [];
  for (let n = 1; n <= rounds; n++) {
    process.stderr.write(`  join to matched on ${nameOf[store]}, round ${n} of ${rounds} …`.padEnd(100).concat("\r"));
    const played = await play({ url, db, seconds: load.seconds });
    for (const [what, all] of Object.entries(played))
      for (const share of [50, 99]) taken.push({ what: `${what}, p${share}, ms`, ms: percentile(all, share / 100) });
  }
  process.stderr.write(`${" ".repeat(100)}\r`);
  const byWhat = [...Map.groupBy(taken, ({ what }) => `${nameOf[store]}, ${what}`)];
  return Object.fromEntries(byWhat.map(([what, each]) => [what, round(median(each.map(({ ms }) => ms)))]));
}

interface Player {
  readonly userId: string;
  readonly token: string;
}

/** Each is good for less than a minute, so they are made before each round. */
const somePlayers = (count: number): Promise<Player[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const userId = `u_${randomUUID()}`;
      return { userId, token: await signer.tokenFor("matchmaking", { userId, roles: ["USER"] }) };
    }),
  );

/** Milliseconds that each took, by what it took them to. */
async function play({ url, db, seconds }: { url: string; db: Db; seconds: number }): Promise<Record<string, number[]>> {
  const players = await somePlayers(load.perSecond * seconds);
  const watchers = await somePlayers(askingPerSecond * seconds);
  const sentAt = new Map<string, number>();
  const next = () => {
    const { userId, token } = players[sentAt.size] as Player;
    sentAt.set(userId, Date.now());
    return (
      `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\nIdempotency-Key: ${userId}\r\n` +
      `Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
    );
  };
  const startedAt = performance.now();
  const [told] = await Promise.all([
    allTold(url, watchers),
    steadily({ url, next, perSecond: load.perSecond, seconds }),
  ]);
  const late = (performance.now() - startedAt) / 1_000 - seconds;
  if (late > 1) throw new Error(`the joins of ${seconds} s took ${late.toFixed(1)} s longer: this is no steady load`);
  return { ...(await recordedOf(db, sentAt)), "told MATCHED": told };
}

/** The clocks are the same machine's. The event's row is the last that is written before the commit. */
async function recordedOf(db: Db, sentAt: ReadonlyMap<string, number>) {
  const text = `
    select e.user_id, extract(epoch from o.created_at)::float8 * 1000 as recorded,
           extract(epoch from m.published_at)::float8 * 1000 as stored
      from ticket_ends e
      join outbox_events o on o.aggregate_key = e.match_id::text
      join todoke_bus.bus_messages m on m.event_id = o.event_id
     where e.user_id = any($1)`;
  // One may be left over, and wait for the next round.
  const wanted = sentAt.size - 1;
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(100)) {
    const { rows } = await db.query<{ user_id: string; recorded: number; stored: number }>(text, [[...sentAt.keys()]]);
    if (rows.length < wanted) continue;
    const since = (at: "recorded" | "stored") => rows.map((row) => row[at] - (sentAt.get(row.user_id) ?? Number.NaN));
    return { "on record": since("recorded"), "event stored by the bus": since("stored") };
  }
  throw new Error(`not all of ${wanted} players were matched within a minute`);
}

/** Joins one after the other, and each asks until it is told, or until nobody else can come. */
async function allTold(url: string, watchers: readonly Player[]): Promise<number[]> {
  const took: number[] = [];
  const asking: Promise<void>[] = [];
  for (const watcher of watchers) {
    asking.push(
      askUntilTold(url, watcher).then((ms) => {
        if (ms !== undefined) took.push(ms);
      }),
    );
    await sleep(1_000 / askingPerSecond);
  }
  await Promise.all(asking);
  return took;
}

const giveUpMs = 5_000;

async function askUntilTold(url: string, { userId, token }: Player): Promise<number | undefined> {
  const authorization = `Bearer ${token}`;
  const startedAt = performance.now();
  const headers = { authorization, "idempotency-key": userId, "content-type": "application/json" };
  const joined = await fetch(`${url}${path}`, { method: "POST", headers, body: "{}" });
  const { ticket_id: ticketId } = (await joined.json()) as { ticket_id: string };
  while (performance.now() - startedAt < giveUpMs) {
    const found = await fetch(`${url}/v1/matchmaking/tickets/${ticketId}`, { headers: { authorization } });
    const { status } = (await found.json()) as { status: string };
    if (status === "MATCHED") return performance.now() - startedAt;
    await sleep(1);
  }
  return undefined; // The last one, for whom nobody was left.
}
