import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join as pathJoin } from "node:path";
import { type Engine, startEngine } from "@todoke/engines";
import { openFaultProxy, until } from "@todoke/kernel/testing";
import { RedisUnavailable } from "@todoke/redis";
import { sharedRedis } from "@todoke/redis/testing";
import { expect, test } from "vitest";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import { record } from "../../store/testing.ts";
import type { TicketQueue } from "../index.ts";
import {
  duels,
  expectConsistent,
  joinInOrder,
  matchedTicketIds,
  mode,
  readStored,
  terms,
  ticketRequest,
} from "../testing.ts";
import { openEndBatches } from "./end-batches.ts";
import { recordEntries } from "./record-entries.ts";
import { claimEnds } from "./recorder-scripts.ts";
import { quarantine } from "./scripts.ts";
import { createRedisHarness } from "./testing.ts";
import { parseEntry, type RawEntry } from "./ticket-record.ts";

const redis = sharedRedis();

/** False if the promise rejects or its value is falsy. */
const holds = (asked: Promise<unknown>) => asked.then(Boolean, () => false);

type RedisStage = Awaited<ReturnType<typeof createRedisHarness>>;

/** Matches until all of these are recorded as MATCHED. */
async function matchAll(t: RedisStage, ids: readonly string[]): Promise<void> {
  const queue = t.open();
  await until("all are matched", async () => {
    await queue.matchFifo(mode, duels);
    const { ended } = await readStored(t.db);
    return ids.every((id) => ended("MATCHED").includes(id));
  });
  await t.allRecorded();
}

test("scripts are loaded again after the server has lost them", async () => {
  await using engine = await startEngine("redis");
  await using t = await createRedisHarness(engine);
  const queue = t.open();
  const ids = await joinInOrder(queue, 2);
  await t.client.scriptFlush();
  ids.push(...(await joinInOrder(queue, 2)));
  await t.client.scriptFlush();
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 2 });
  await t.client.scriptFlush();
  await t.allRecorded();
  expect((await readStored(t.db)).ended("MATCHED").sort()).toEqual(ids.sort());
  await expectConsistent(t.db);
});

test("an emptied Redis loses waiting tickets but no ends; users join again and are matched", async () => {
  await using engine = await startEngine("redis");
  await using t = await createRedisHarness(engine, { recorders: 2 });
  const queue = t.open();
  const requests = Array.from({ length: 12 }, (_, n) => ticketRequest({ userId: `u_${n}`, key: `k${n}` }));
  const cancelled = new Map<string, string | undefined>();
  for (let round = 0; round < 3; round++) {
    const joined = await Promise.all(requests.map((each) => queue.join(each)));
    const [first] = joined;
    await Promise.all([
      queue.matchFifo(mode, { ...duels, matchesMax: 3 }),
      queue.cancel(first?.ticketId ?? "").then((status) => cancelled.set(first?.ticketId ?? "", status)),
      t.client.flushAll(),
    ]);
  }
  // And a cancel that was acknowledged before.
  const last = await queue.join(ticketRequest());
  cancelled.set(last.ticketId, await queue.cancel(last.ticketId));
  await t.client.flushAll();
  await t.allRecorded();
  // Every status that a client received is recorded. For an unknown ticket there is none: a recorder may still hold its end.
  for (const [ticketId, status] of cancelled)
    if (status !== undefined) expect((await selectTicketEnd(t.db, ticketId))?.status).toBe(status);
  await expectConsistent(t.db);

  await t.client.flushAll();
  const [before] = [await readStored(t.db)];
  const again = await Promise.all(requests.map((each) => queue.join(each)));
  for (const { ticketId, kind, replayed } of again) {
    expect([kind, replayed]).toEqual(["new", false]);
    expect(before.ends.map((row) => row.ticket_id)).not.toContain(ticketId);
  }
  await matchAll(
    t,
    again.map(({ ticketId }) => ticketId),
  );
  const after = await readStored(t.db);
  expect(after.matches).toEqual(expect.arrayContaining(before.matches));
  await expectConsistent(t.db);
});

/** Runs `scenario` on a Redis, then restarts it from its earlier files. */
async function forgetting(
  scenario: (engine: Engine, goBack: () => Promise<void>, keep: () => Promise<void>) => Promise<void>,
) {
  const folder = await mkdtemp(pathJoin(tmpdir(), "matchmaking-redis-"));
  try {
    const [dir, copy] = [pathJoin(folder, "data"), pathJoin(folder, "copy")];
    // With fsync once a second, a busy disk would decide what the copy contains.
    await using engine = await startEngine("redis", { dir, settings: { appendfsync: "always" } });
    const keep = async () => {
      await engine.kill();
      await cp(dir, copy, { recursive: true });
      await engine.start();
    };
    const goBack = async () => {
      await engine.kill();
      await rm(dir, { recursive: true });
      await cp(copy, dir, { recursive: true });
      await engine.start();
    };
    await scenario(engine, goBack, keep);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("a Redis restored from an old file contradicts no recorded end", async () => {
  await forgetting(async (engine, goBack, keep) => {
    await using t = await createRedisHarness(engine, { recorders: 0 });
    const recorder = t.record();
    const queue = t.open();
    const answers = () => holds(t.client.ping());
    const isQueued = (id: string) => () => holds(queue.find(id).then((found) => found?.status === "QUEUED"));
    const users = ["u_1", "u_2", "u_3", "u_4", "u_5"];
    const joined = [];
    for (const userId of users) joined.push(await queue.join(ticketRequest({ userId })));
    const [a = "", b = "", c = "", d = "", e = ""] = joined.map(({ ticketId }) => ticketId);
    await keep();
    await until("the queue is reached again", isQueued(a));
    expect(await queue.matchFifo(mode, { ...duels, matchesMax: 1 })).toEqual({ made: 1 });
    expect(await queue.cancel(c)).toBe("CANCELLED");
    await until("the operator is back", answers);
    await t.allRecorded();
    // It may have claimed the cancel too, and would then ack that ticket in the restored Redis.
    await recorder[Symbol.asyncDispose]();
    await goBack();
    await until("the queue is reached again", isQueued(a));
    await until("the operator is back", answers);
    t.record();

    // An ended ticket does not block a join.
    const again = await queue.join(ticketRequest({ userId: "u_2" }));
    expect(again.kind).toBe("new");
    expect(await queue.cancel(a)).toBe("MATCHED");
    // The cancelled ticket is the oldest: its match is void, and the other ticket of the match becomes the oldest.
    expect((await queue.find(c))?.status).toBe("QUEUED");
    for (let round = 0; round < 2; round++) {
      expect(await queue.matchFifo(mode, { ...duels, matchesMax: 1 })).toEqual({ made: 1 });
      await t.allRecorded();
    }
    expect(t.recorded.filter(({ end, result }) => end.kind === "match" && result.kind === "void")).toHaveLength(1);
    expect(await queue.cancel(c)).toBe("CANCELLED");
    expect((await queue.find(again.ticketId))?.status).toBe("QUEUED");
    const { ended, damaged } = await readStored(t.db);
    expect(damaged).toEqual([]);
    expect(ended("MATCHED").sort()).toEqual([a, b, d, e].sort());
    expect((await matchedTicketIds(t.db)).map((pair) => [...pair].sort())).toEqual([[a, b].sort(), [d, e].sort()]);
    await expectConsistent(t.db);
  });
});

test("a ticket that has ended is found by its user until its end is recorded, and leaves nothing behind", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [id = ""] = await joinInOrder(queue, 1, { userId: "u_1" });
  await joinInOrder(queue, 1, { userId: "u_2" });
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
  const find = () => queue.findOfUser({ userId: "u_1", modes: [mode] });
  expect(await find()).toMatchObject([{ ticket: { ticketId: id }, status: "MATCHED" }]);
  t.record();
  await t.allRecorded();
  await until("the end is acked", async () => (await find()).length === 0);
  expect(await t.client.exists([t.key("users"), t.key("tickets")])).toBe(0);
});

test("a requeued ticket keeps its join order, or expires if its user has a newer one", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const users = ["u_1", "u_2", "u_3"];
  const joined = [];
  for (const userId of users) joined.push(await queue.join(ticketRequest({ userId })));
  const [a = "", b = "", c = ""] = joined.map(({ ticketId }) => ticketId);
  const seats = [a, b, c].map((ticketId, n) => ({ ticketId, team: n + 1 }));
  // PostgreSQL has an end of the first ticket that Redis does not have.
  await queue.cancel(a);
  await queue.join(ticketRequest({ userId: "u_1" }));
  const record = await t.client.hGet(t.key("tickets"), b);
  await t.client.hSet(t.key("tickets"), a, (record ?? "").replaceAll(b, a).replaceAll("u_2", "u_0"));
  await t.client.hSet(t.key("users"), "u_0", a);
  expect(await queue.commitProposals(mode, [{ seats }], terms)).toEqual({ made: 1 });
  const newer = await queue.join(ticketRequest({ userId: "u_3" }));
  const placeBefore = JSON.parse(record ?? "").joined;

  t.record();
  await t.allRecorded();
  await until("the replaced one is on record", async () => (await readStored(t.db)).ended("EXPIRED").length === 1);
  expect((await selectTicketEnd(t.db, c))?.reason).toBe("replaced");
  expect((await queue.find(b))?.status).toBe("QUEUED");
  expect(await t.client.zScore(t.key("queue"), b)).toBe(Number(placeBefore));
  expect((await queue.find(newer.ticketId))?.status).toBe("QUEUED");
  expect(await queue.find(a)).toBeUndefined();
  expect((await readStored(t.db)).matches).toEqual([]);
  await expectConsistent(t.db);
});

test("a join, match or cancel whose reply was lost can be repeated", async () => {
  await using wire = await openFaultProxy(redis.url);
  await using t = await createRedisHarness(redis);
  const queue = t.open(wire.url);
  // Loads the scripts, so that the reply that is cut is that of the script.
  await queue.cancel((await queue.join(ticketRequest())).ticketId);
  await queue.matchFifo(mode, duels);

  const one = ticketRequest({ userId: "u_cut" });
  let cut = wire.cutNext("u_cut", "answer");
  await expect(queue.join(one)).rejects.toBeInstanceOf(RedisUnavailable);
  await cut;
  await until("the queue is reached again", () => holds(queue.sweep(mode)));
  const joined = await queue.join(one);
  expect(joined.replayed).toBe(true);
  expect((await queue.sweep(mode)).waiting).toBe(1);

  const [other = "", alone = ""] = await joinInOrder(queue, 2);
  cut = wire.cutNext(t.keyPrefix, "answer");
  await expect(queue.matchFifo(mode, duels)).rejects.toBeInstanceOf(RedisUnavailable);
  await cut;
  await until("the match is on record", async () => (await readStored(t.db)).matches.length === 1);
  expect((await matchedTicketIds(t.db)).map((pair) => [...pair].sort())).toEqual([[joined.ticketId, other].sort()]);

  await until("the queue is reached again", () => holds(queue.find(alone)));
  cut = wire.cutNext(alone, "answer");
  await expect(queue.cancel(alone)).rejects.toBeInstanceOf(RedisUnavailable);
  await cut;
  await until("it is cancelled", () => holds(queue.cancel(alone).then((status) => status === "CANCELLED")));
  await t.allRecorded();
  expect((await selectTicketEnd(t.db, alone))?.status).toBe("CANCELLED");
  await expectConsistent(t.db);
});

test("ends of a recorder that crashed before the ack are acked by another, with one event each", async () => {
  await using wire = await openFaultProxy(redis.url);
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const ids = await joinInOrder(queue, 4);
  await queue.matchFifo(mode, duels);
  const crashing = openEndBatches({ ...t.process(wire.url), modes: () => [mode] });
  const cut = wire.cutNext('"ended":', "request");
  await expect(crashing.recordMode(mode)).rejects.toBeInstanceOf(RedisUnavailable);
  await cut;
  expect((await readStored(t.db)).matches).toHaveLength(2);
  expect(await t.client.xLen(t.key("ends"))).toBe(2);

  t.record(undefined, { reclaimMs: 50 });
  await t.allRecorded();
  expect(t.recorded.map(({ result }) => result.kind)).toEqual(["recorded", "recorded", "duplicate", "duplicate"]);
  expect((await readStored(t.db)).ended("MATCHED").sort()).toEqual([...ids].sort());
  expect(await t.client.hLen(t.key("tickets"))).toBe(0);
  await expectConsistent(t.db);
});

test("a match is recorded by a later process if all processes crashed after it was made", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [a = "", b = ""] = await joinInOrder(queue, 2);
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
  expect(await queue.find(a)).toMatchObject({ status: "MATCHED", ticket: { ticketId: a } });
  expect(await selectTicketEnd(t.db, a)).toBeUndefined();
  // A cancel returns MATCHED and records the match.
  expect(await queue.cancel(b)).toBe("MATCHED");
  expect((await selectTicketEnd(t.db, a))?.status).toBe("MATCHED");
  expect(await t.client.xLen(t.key("ends"))).toBe(0);
  await expectConsistent(t.db);
});

test("a recorder retries the ends that PostgreSQL could not store", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  // Another recorder would claim the ends after an hour, long after this test.
  t.record(undefined, { reclaimMs: 3_600_000 });
  const queue = t.open();
  await t.db.query("alter table ticket_ends rename to renamed");
  const ids = await joinInOrder(queue, 4);
  await queue.matchFifo(mode, duels);
  await until("it failed", () => t.errors.length > 0);
  expect(await t.client.xLen(t.key("ends"))).toBe(2);
  expect((await queue.find(ids[0] ?? ""))?.status).toBe("MATCHED");
  await t.db.query("alter table renamed rename to ticket_ends");
  await until("it is recorded", async () => (await readStored(t.db)).matches.length === 2);
  await t.allRecorded();
  await expectConsistent(t.db);
});

test("while PostgreSQL is unavailable, unrecorded ends are bounded; then matching continues", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0, backlogMax: 3 });
  const queue = t.open();
  const ids = await joinInOrder(queue, 10);
  for (let n = 0; n < 5; n++) await queue.matchFifo(mode, { ...duels, matchesMax: 1 });
  expect(await t.client.xLen(t.key("ends"))).toBe(3);
  const seats = ids.slice(-2).map((ticketId, n) => ({ ticketId, team: n + 1 }));
  expect(await queue.commitProposals(mode, [{ seats }], terms)).toEqual({ made: 0 });
  const recorder = t.record();
  expect([...(await recorder.backlog()).keys()]).toEqual([mode, "ranked"]);
  await matchAll(t, ids);
  await expectConsistent(t.db);
});

test("a late ack of a void match does not change a ticket that is in another match", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [a = "", b = ""] = await joinInOrder(queue, 2);
  const lost = (await queue.find(b))?.ticket ?? expect.fail("the ticket is not open");
  await queue.matchFifo(mode, duels);
  // PostgreSQL has a cancel that Redis has lost, so the match of both is void.
  await record(t.db, { kind: "cancelled", ticket: lost, endedAt: Date.now() });
  const recorder = t.process();
  const input = { keys: t.keysOfMode(), arguments: ["10", "0"] };
  const claimed = (await recorder.link.run(claimEnds, input)) as RawEntry[];
  const batch = { mode, entries: claimed.map((raw) => parseEntry(mode, raw)) };
  expect(await recordEntries(recorder, batch)).toMatchObject({
    recorded: [{ result: { kind: "void" } }],
    requeued: 1,
  });
  expect((await queue.find(a))?.status).toBe("QUEUED");

  const [c = ""] = await joinInOrder(queue, 1);
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
  // A second process claimed the same end before it was acked, and finishes only now.
  expect(await recordEntries(recorder, batch)).toMatchObject({ requeued: 0 });
  expect((await queue.find(a))?.status).toBe("MATCHED");
  t.record();
  await t.allRecorded();
  expect(await matchedTicketIds(t.db)).toEqual([[a, c]]);
});

test("without data loss in Redis, a late cancel makes no match void", async () => {
  await using t = await createRedisHarness(redis, { recorders: 2 });
  const [players, matchmaker] = [t.open(), t.open()];
  for (let round = 0; round < 20; round++) {
    const ids = await Promise.all(
      Array.from({ length: 6 }, async () => (await players.join(ticketRequest())).ticketId),
    );
    await matchmaker.matchFifo(mode, { ...duels, matchesMax: 1 });
    await Promise.all([
      ...ids.slice(0, 4).map((id) => players.cancel(id)),
      matchmaker.matchFifo(mode, duels),
      ...ids.slice(4).map((id) => players.cancel(id)),
    ]);
  }
  await t.allRecorded();
  expect(t.recorded.filter(({ result }) => result.kind === "void")).toEqual([]);
  expect((await readStored(t.db)).matches.length).toBeGreaterThanOrEqual(20);
  await expectConsistent(t.db);
});

test("a ticket whose match was lost in Redis is unknown, and its user can join again", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [a = "", b = ""] = await joinInOrder(queue, 2);
  await queue.matchFifo(mode, duels);
  await t.client.del(t.key("ends"));
  expect(await queue.find(a)).toBeUndefined();
  expect(await queue.cancel(b)).toBeUndefined();
  expect(await t.client.hExists(t.key("tickets"), b)).toBe(0);
});

test("a damaged ticket that was rewritten after it was read is not quarantined", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const [id = ""] = await joinInOrder(queue, 1);
  const read = [id, '{"user": "half a rec', "its record is not a JSON object"];
  await t.process().link.run(quarantine, { keys: t.keysOfMode(), arguments: read });
  expect((await queue.find(id))?.status).toBe("QUEUED");
  expect(await t.client.xLen(t.key("ends"))).toBe(0);
});

/** Two queued tickets of u_1, as after a loss of data: `users` names only the newer one. */
async function replaceTicket({ client, key }: RedisStage, queue: TicketQueue) {
  const { ticketId: old } = await queue.join(ticketRequest({ userId: "u_1" }));
  const [other = ""] = await joinInOrder(queue, 1);
  await client.hDel(key("users"), "u_1");
  const { ticketId: newer } = await queue.join(ticketRequest({ userId: "u_1" }));
  return { old, other, newer };
}

test("a queued ticket whose user has a newer one is not matched and ends as replaced", async () => {
  await using t = await createRedisHarness(redis);
  const queue = t.open();
  const { old, other, newer } = await replaceTicket(t, queue);
  expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
  await t.allRecorded();
  expect(await matchedTicketIds(t.db)).toEqual([[other, newer]]);
  expect((await selectTicketEnd(t.db, old))?.reason).toBe("replaced");
  await expectConsistent(t.db);
});

test("the end of a replaced ticket leaves the newer ticket of its user open", async () => {
  await using t = await createRedisHarness(redis);
  const queue = t.open();
  const { old, newer } = await replaceTicket(t, queue);
  expect(await queue.cancel(old)).toBe("CANCELLED");
  expect(await queue.join(ticketRequest({ userId: "u_1" }))).toMatchObject({ kind: "open", ticketId: newer });
});

test("an end that a recorder has just claimed is not claimed by another", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  await joinInOrder(queue, 2);
  await queue.matchFifo(mode, duels);
  const claim = () => t.process().link.run(claimEnds, { keys: t.keysOfMode(), arguments: ["10", "3600000"] });
  expect(await claim()).toHaveLength(1);
  expect(await claim()).toEqual([]);
});

test("a recorder keeps an end that collides with other processes in every attempt, and records it later", async () => {
  await using t = await createRedisHarness(redis, { recorders: 0 });
  const queue = t.open();
  const ids = await joinInOrder(queue, 2);
  await queue.matchFifo(mode, duels);
  await t.db.query(`
    create function collide() returns trigger language plpgsql as 'begin raise unique_violation; end';
    create trigger collide before insert on ticket_ends for each row execute function collide()`);
  const recorder = openEndBatches({ ...t.process(), modes: () => [mode] });
  await expect(recorder.recordMode(mode)).rejects.toMatchObject({ code: "23505" });
  expect(await t.client.xLen(t.key("ends"))).toBe(1);
  await t.db.query("drop trigger collide on ticket_ends");
  await recorder.recordMode(mode);
  const { damaged, ended } = await readStored(t.db);
  expect(damaged).toEqual([]);
  expect(ended("MATCHED").sort()).toEqual(ids.sort());
});
