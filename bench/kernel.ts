/**
 * Benchmarks of the kernel, each with a baseline that does less: the worker against bare statements, the relay against
 * publishing alone, and batched grants against unbatched ones.
 */
import { randomUUIDv7 } from "node:crypto";
import { createChangeBatcher } from "@todoke/entitlement/change-batcher";
import { grantEntitlement } from "@todoke/entitlement/grant-entitlement";
import type { EventBus } from "@todoke/kernel/bus";
import { createClaims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import { digestJson, once } from "@todoke/kernel/idempotency";
import { openOutbox } from "@todoke/kernel/outbox";
import { createWorker, done } from "@todoke/kernel/worker";
import { drainOutbox } from "./drain.ts";
import { type Contender, measureInTurns, percentile, ratio } from "./measure.ts";
import type { Result } from "./report.ts";

const jobs = 50_000;
const batch = 500;

/** The baseline is a typical queue without fence, order and lease; the ratios show what these cost. */
export async function claimAndSettle(db: Db): Promise<Result> {
  const fill = async () => {
    await db.query("truncate outbox_events");
    await db.query(
      `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
       select gen_random_uuid(), 'T', 's', 'k' || i, 1, '{}' from generate_series(1, ${jobs}) i`,
    );
    await db.query("vacuum analyze outbox_events");
  };
  const bare: Contender = {
    name: "bare statements, one connection",
    before: fill,
    async run() {
      for (let left = jobs; left > 0; left -= batch) {
        const { rows } = await db.query({
          name: "bare claim",
          text: `with c as materialized (select event_id from outbox_events where status = 'PENDING' order by position
                                          limit $1 for update skip locked)
                 update outbox_events t set status = 'IN_FLIGHT', lease_until = now() from c where t.event_id = c.event_id
                 returning t.event_id`,
          values: [batch],
        });
        await db.query({
          name: "bare settle",
          text: `update outbox_events set status = 'PUBLISHED', published_at = now(), lease_until = null
                  where event_id = any($1::uuid[])`,
          values: [rows.map((row) => row.event_id)],
        });
      }
      return jobs;
    },
  };
  const drain = (name: string, table: Parameters<typeof createClaims>[0]): Contender => ({
    name,
    before: fill,
    async run() {
      let settled = 0;
      const all = Promise.withResolvers<void>();
      const worker = createWorker({
        name: "bench",
        db,
        claims: createClaims<object>(table),
        settings: { batchMax: batch, concurrency: 2 * batch },
        run: (claimed) => {
          settled += claimed.length;
          if (settled >= jobs) all.resolve();
          return claimed.map(() => Promise.resolve(done));
        },
      });
      worker.start();
      await all.promise;
      await worker.stop();
      return jobs;
    },
  });
  const unordered = {
    table: "outbox_events",
    key: "event_id",
    keyType: "uuid",
    states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "PUBLISHED", dead: "FAILED" },
    columns: { doneAt: "published_at", dueAt: "next_retry_at" },
    select: "c.payload",
  } as const;
  await db.query(`create index if not exists bench_due on outbox_events (next_retry_at) where status = 'PENDING'`);
  const figures = await measureInTurns("claim and settle", [
    bare,
    drain("worker, unordered table", unordered),
    drain("worker, ordered table", { ...unordered, order: { aggregate: "aggregate_key", position: "position" } }),
  ]);
  await db.query(`drop index bench_due`);
  const [plain, unorderedFigure, ordered] = figures;
  return {
    title: `claim and settle of ${jobs} no-op jobs, ${batch} per claim`,
    figures,
    summary: { "unordered / bare": ratio(unorderedFigure, plain), "ordered / bare": ratio(ordered, plain) },
  };
}

const events = 30_000;

/** The baseline publishes the same events from memory through the same adapter. */
export async function relayTo(kind: string, db: Db, bus: EventBus): Promise<Result> {
  const subject = `bench.${kind}`;
  await using _ = await bus.subscribe({
    consumer: "bench",
    subjects: [subject],
    handle: async (all) => all.map(() => done),
    batchMax: 500,
  });
  await _[Symbol.asyncDispose](); // The queue exists now, and no consumer competes for CPU.
  const payload = Buffer.alloc(160, 1);
  const publishOnly: Contender = {
    name: "publish alone",
    async run() {
      const make = () =>
        Array.from({ length: 200 }, () => ({
          eventId: randomUUIDv7(),
          eventType: "T",
          subject,
          aggregateKey: randomUUIDv7(),
          occurredAt: "2026-01-01T00:00:00Z",
          headers: {},
          payload,
        }));
      const publisher = async () => {
        for (let sent = 0; sent < events / 2; sent += 200) await bus.publish(make());
      };
      await Promise.all([publisher(), publisher()]);
      return events;
    },
  };
  const relayed: Contender = {
    name: "relay",
    async before() {
      await db.query("truncate outbox_events");
      await db.query(
        `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload)
         select uuidv7(), 'T', '${subject}', 'k' || i, 1, jsonb_build_object('x', repeat('x', 150))
           from generate_series(1, ${events}) i`,
      );
      await db.query("vacuum analyze outbox_events");
    },
    run: () => drainOutbox(events, { db, bus }),
  };
  const figures = await measureInTurns(`relay to ${kind}`, [publishOnly, relayed]);
  return {
    title: `relay of ${events} events to ${kind}, 200 per batch, three batches at once`,
    figures,
    summary: { "relay / publish alone": ratio(figures[1], figures[0]) },
  };
}

/** Grants by 64 callers: a transaction each, one statement each, and batched. */
export async function batchedGrants(db: Db, open: (poolMax: number) => Db): Promise<Result> {
  const callers = 64;
  const perCaller = 150;
  const outbox = openOutbox();
  let n = 0;
  const request = () => {
    const id = randomUUIDv7();
    const body = { user_id: `u_${id}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${n++}` };
    return { ...body, key: { scope: "bench", key: id, requestHash: digestJson(body) } };
  };
  const runCallers = async (one: (grant: ReturnType<typeof request>) => Promise<unknown>) => {
    await Promise.all(
      Array.from({ length: callers }, async () => {
        for (let i = 0; i < perCaller; i++) await one(request());
      }),
    );
    return callers * perCaller;
  };
  const pool = open(8);
  const inTransaction = (grant: ReturnType<typeof request>) =>
    once(pool, grant.key, async (tx) => {
      const { rows } = await tx.query({
        name: "bench upsert",
        text: `insert into entitlements as e (user_id, stock_keeping_unit, status, source, source_id)
               values ($1, $2, 'ACTIVE', $3, $4)
               on conflict (user_id, stock_keeping_unit) do update set version = e.version + 1 returning version`,
        values: [grant.user_id, grant.stock_keeping_unit, grant.reason, grant.purchase_id],
      });
      await outbox.append(tx, {
        eventType: "EntitlementGranted",
        subject: "entitlement.events",
        aggregateKey: grant.user_id,
        version: rows[0].version,
        payload: { user_id: grant.user_id },
      });
      return { status: 201, body: { version: Number(rows[0].version) } };
    });
  // One request at a time in each batcher: the same statement runs once per request, on every connection of the pool.
  const singleRequestBatchers = Array.from({ length: 8 }, () => grantEntitlement(createChangeBatcher(pool, () => {})));
  const batched = grantEntitlement(createChangeBatcher(pool, () => {}));
  const before = async () => void (await db.query("truncate outbox_events, idempotency_keys, entitlements"));
  let requestCount = 0;
  const figures = await measureInTurns("grants", [
    { name: "a transaction of six statements", before, run: () => runCallers(inTransaction) },
    {
      name: "one statement per request, 8 at once",
      before,
      run: () => runUnbatched(runCallers, singleRequestBatchers, () => requestCount++),
    },
    { name: "batched", before, run: () => runCallers(batched) },
  ]);
  const [six, one, all] = figures;
  return {
    title: `grants by ${callers} concurrent callers`,
    figures,
    summary: { "batched / six statements": ratio(all, six), "batched / one statement each": ratio(all, one) },
  };
}

/** Gives each batcher one request at a time, so that no batch has two. */
async function runUnbatched<R>(
  runCallers: (one: (request: R) => Promise<unknown>) => Promise<number>,
  batchers: ((request: R) => Promise<unknown>)[],
  next: () => number,
): Promise<number> {
  const tails = batchers.map(() => Promise.resolve() as Promise<unknown>);
  return runCallers((request) => {
    const index = next() % batchers.length;
    const result = (tails[index] ?? Promise.resolve()).then(() => batchers[index]?.(request));
    tails[index] = result.catch(() => {});
    return result;
  });
}

/** The latency of a single caller: batching must not add to it. */
export async function batchLatency(db: Db): Promise<Result> {
  const grant = grantEntitlement(createChangeBatcher(db, () => {}));
  const times: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    const id = randomUUIDv7();
    const body = { user_id: `u_${id}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${i}` };
    const startedAt = performance.now();
    await grant({ ...body, key: { scope: "bench", key: id, requestHash: digestJson(body) } });
    times.push(performance.now() - startedAt);
  }
  const percentileMs = (share: number) => Math.round(percentile(times, share) * 1_000) / 1_000;
  return {
    title: "batched grant by a single caller, ms",
    figures: [],
    summary: { p50: percentileMs(0.5), p99: percentileMs(0.99) },
  };
}
