/**
 * The kernel's figures, each as a ratio to something that does less, measured by turns in one run:
 * what the worker costs over bare statements, the relay over publishing alone, and what gathering is worth.
 */
import { randomUUIDv7 } from "node:crypto";
import { createChangeBatcher } from "@todoke/entitlement/change-batcher";
import { grantEntitlement } from "@todoke/entitlement/grant-entitlement";
import type { EventBus } from "@todoke/kernel/bus";
import { claims } from "@todoke/kernel/claims";
import type { Db } from "@todoke/kernel/db";
import { digestOf, once } from "@todoke/kernel/idempotency";
import { openOutbox } from "@todoke/kernel/outbox";
import { done, worker } from "@todoke/kernel/worker";
import { drainOutbox } from "./drain.ts";
import { type Contender, type Figure, race } from "./measure.ts";
import type { Result } from "./report.ts";

const ratio = (over: Figure | undefined, under: Figure | undefined) =>
  Math.round(((over?.perSecond ?? Number.NaN) / (under?.perSecond ?? Number.NaN)) * 100) / 100;

const jobs = 50_000;
const batch = 500;

/** A queue as it is usually written: no fence, no order, no lease. What claims adds has to be paid from here. */
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
  const drain = (name: string, table: Parameters<typeof claims>[0]): Contender => ({
    name,
    before: fill,
    async run() {
      let settled = 0;
      const all = Promise.withResolvers<void>();
      const w = worker({
        name: "bench",
        db,
        claims: claims<object>(table),
        settings: { batchMax: batch, concurrency: 2 * batch },
        run: (claimed) => {
          settled += claimed.length;
          if (settled >= jobs) all.resolve();
          return claimed.map(() => Promise.resolve(done));
        },
      });
      w.start();
      await all.promise;
      await w.stop();
      return jobs;
    },
  });
  const unordered = {
    table: "outbox_events",
    key: "event_id",
    keyType: "uuid",
    states: { ready: "PENDING", claimed: "IN_FLIGHT", done: "PUBLISHED", dead: "FAILED" },
    columns: { doneAt: "published_at", dueAt: "next_retry_at" },
    read: "c.payload",
  } as const;
  await db.query(`create index if not exists bench_due on outbox_events (next_retry_at) where status = 'PENDING'`);
  const figures = await race("claim and settle", [
    bare,
    drain("worker, unordered table", unordered),
    drain("worker, ordered table", { ...unordered, order: { aggregate: "aggregate_key", position: "position" } }),
  ]);
  await db.query(`drop index bench_due`);
  const [plain, free, ordered] = figures;
  return {
    title: `claim and settle of ${jobs} no-op jobs, ${batch} per claim`,
    figures,
    ratios: { "unordered / bare": ratio(free, plain), "ordered / bare": ratio(ordered, plain) },
  };
}

const events = 30_000;

/** Beside publishing the same events from memory through the same adapter. */
export async function relayTo(kind: string, db: Db, bus: EventBus): Promise<Result> {
  const subject = `bench.${kind}`;
  await using _ = await bus.subscribe({
    consumer: "bench",
    subjects: [subject],
    handle: async (all) => all.map(() => done),
    batchMax: 500,
  });
  await _[Symbol.asyncDispose](); // The queue is there, and nobody competes for the processor.
  const payload = Buffer.alloc(160, 1);
  const alone: Contender = {
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
      const lane = async () => {
        for (let sent = 0; sent < events / 2; sent += 200) await bus.publish(make());
      };
      await Promise.all([lane(), lane()]);
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
  const figures = await race(`relay to ${kind}`, [alone, relayed]);
  return {
    title: `relay of ${events} events to ${kind}, 500 per batch, three batches at once`,
    figures,
    ratios: { "relay / publish alone": ratio(figures[1], figures[0]) },
  };
}

/** Grants by 64 callers: as statements of a transaction, as one statement each, and gathered. */
export async function gathered(db: Db, open: (poolMax: number) => Db): Promise<Result> {
  const callers = 64;
  const perCaller = 150;
  const outbox = openOutbox();
  let n = 0;
  const request = () => {
    const id = randomUUIDv7();
    const body = { user_id: `u_${id}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${n++}` };
    return { ...body, key: { scope: "bench", key: id, requestHash: digestOf(body) } };
  };
  const crowd = async (one: (grant: ReturnType<typeof request>) => Promise<unknown>) => {
    await Promise.all(
      Array.from({ length: callers }, async () => {
        for (let i = 0; i < perCaller; i++) await one(request());
      }),
    );
    return callers * perCaller;
  };
  const pool = open(8);
  const inSteps = (grant: ReturnType<typeof request>) =>
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
  // With a batch of one each, the same statement runs once per request, on as many connections as the pool has.
  const oneByOne = Array.from({ length: 8 }, () => grantEntitlement(createChangeBatcher(pool, () => {})));
  const together = grantEntitlement(createChangeBatcher(pool, () => {}));
  const before = async () => void (await db.query("truncate outbox_events, idempotency_keys, entitlements"));
  let turn = 0;
  const figures = await race("grants", [
    { name: "a transaction of six statements", before, run: () => crowd(inSteps) },
    { name: "one statement per request, 8 at once", before, run: () => crowdOneByOne(crowd, oneByOne, () => turn++) },
    { name: "gathered", before, run: () => crowd(together) },
  ]);
  const [six, one, all] = figures;
  return {
    title: `grants by ${callers} callers at once`,
    figures,
    ratios: { "gathered / six statements": ratio(all, six), "gathered / one statement each": ratio(all, one) },
  };
}

/** Eight lanes, and never two requests in one lane at a time: gather then has nothing to gather. */
async function crowdOneByOne<R>(
  crowd: (one: (request: R) => Promise<unknown>) => Promise<number>,
  lanes: ((request: R) => Promise<unknown>)[],
  next: () => number,
): Promise<number> {
  const tails = lanes.map(() => Promise.resolve() as Promise<unknown>);
  return crowd((request) => {
    const lane = next() % lanes.length;
    const result = (tails[lane] ?? Promise.resolve()).then(() => lanes[lane]?.(request));
    tails[lane] = result.catch(() => {});
    return result;
  });
}

/** How long one caller waits, with nobody else there: gathering must cost nothing then. */
export async function alone(db: Db): Promise<Result> {
  const grant = grantEntitlement(createChangeBatcher(db, () => {}));
  const times: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    const id = randomUUIDv7();
    const body = { user_id: `u_${id}`, stock_keeping_unit: "item1", reason: "purchase", purchase_id: `p_${i}` };
    const startedAt = performance.now();
    await grant({ ...body, key: { scope: "bench", key: id, requestHash: digestOf(body) } });
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => Math.round((times[Math.floor(times.length * share)] ?? 0) * 1_000) / 1_000;
  return { title: "one caller alone, gathered grant, ms", figures: [], ratios: { p50: at(0.5), p99: at(0.99) } };
}
