import { MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import { digestJson, once } from "@todoke/kernel/idempotency";
import type { NewEvent } from "@todoke/kernel/outbox";
import { fixedId, testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { service } from "./service.ts";

const migrations = new URL("./testing/", import.meta.url); // No SQL: it has the tables of the kernel only.

const accountCreated = (n: number): NewEvent => ({
  eventId: fixedId(n),
  eventType: "AccountCreated",
  subject: "account.events",
  aggregateKey: `u_${n}`,
  version: 1,
  payload: {
    event_id: fixedId(n),
    event_type: "AccountCreated",
    occurred_at: "2026-01-08T07:00:00Z",
    version: "1",
    user_id: `u_${n}`,
    status: "ACTIVE",
  },
});

/** A service that emits account events and consumes them itself. The event of u_9 is unreadable. */
function sampleService() {
  const seen: string[] = [];
  let emit = async (..._events: NewEvent[]) => {};
  let runOnce = async () => {};
  const sample = service({
    name: "sample",
    port: 8099,
    migrations,
    settings: () => ({}),
    roles: ["cleaner"],
    workers: ["cleaner"],
    emits: ["account.events"],
    consumes: { subjects: ["account.events"] },
    async build({ db, outbox }) {
      emit = (...events) => transaction(db, (tx) => outbox.append(tx, ...events));
      runOnce = async () => {
        await once(db, { scope: "s", key: "k", requestHash: digestJson({}) }, async () => ({ status: 200, body: {} }));
      };
      return {
        decode: ({ aggregateKey }) => {
          if (aggregateKey === "u_9") throw new Error("not readable");
          return aggregateKey;
        },
        effect: async (_tx, users) => void seen.push(...users),
      };
    },
  });
  return { ...sample, seen, emit: (...events: NewEvent[]) => emit(...events), runOnce: () => runOnce() };
}

async function setup(env: Record<string, string> = {}) {
  const t = await testDatabase();
  const sample = sampleService();
  const all = { DATABASE_URL: t.url, SAMPLE_PORT: "0", LOG_LEVEL: "silent", ...env };
  await sample.migrate(all, { dryRun: false });
  const broker = new MemoryBroker();
  const running = await sample.start(all, { openBus: async () => memoryBus(broker) });
  const get = async (path: string) => (await fetch(`${running.opsUrl}${path}`)).text();
  const headers = { "content-type": "application/json" };
  return {
    ...sample,
    db: t.open({ schema: "sample" }),
    get,
    post: (path: string, body: string) => fetch(`${running.opsUrl}${path}`, { method: "POST", headers, body }),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("a service that emits and consumes relays its events and takes effect", async () => {
  await using t = await setup();
  await t.emit(accountCreated(1), accountCreated(2));
  await until("both took effect", () => t.seen.length === 2);
  expect(t.seen.toSorted()).toEqual(["u_1", "u_2"]);
});

test("dead events of outbox and inbox are counted and listed on the ops listener", async () => {
  await using t = await setup();
  await t.emit({ ...accountCreated(3), payload: {} }, accountCreated(9));
  await until("both are dead", async () => {
    const [outbox, inbox] = await Promise.all(["outbox_events", "inbox_dlq"].map((name) => dead(name)));
    return outbox === 1 && inbox === 1;
  });
  const lines = async () => (await t.get("/metrics")).split("\n");
  await expect
    .poll(lines, { interval: 500 })
    .toEqual(
      expect.arrayContaining(["sample_outbox_failed_current 1", 'todoke_inbox_dead_current{consumer="sample"} 1']),
    );
  expect(JSON.parse(await t.get("/debug/outbox/failed")).events).toMatchObject([{ event_id: fixedId(3) }]);
  expect(JSON.parse(await t.get("/debug/inbox/dlq")).events).toMatchObject([{ event_id: fixedId(9) }]);

  async function dead(name: string): Promise<number> {
    return t.dead.tables.find((table) => table.name === name)?.count(t.db) ?? 0;
  }
});

test("a dead letter is discarded once over HTTP, and the events behind it are relayed", async () => {
  await using t = await setup();
  await t.emit({ ...accountCreated(3), payload: {} }, { ...accountCreated(4), aggregateKey: "u_3", version: 2 });
  const [outbox] = t.dead.tables;
  await until("it is dead", async () => (await outbox?.count(t.db)) === 1);
  const discard = async (path: string) => {
    const body = JSON.stringify({ discarded_by: "aki", reason: "a test event" });
    const response = await t.post(`/debug/dead/${path}/discard`, body);
    return [response.status, await response.json()];
  };
  expect(t.seen).toEqual([]);
  expect(await discard(`outbox_events/${fixedId(3)}`)).toEqual([200, { discarded: true }]);
  await until("the next event took effect", () => t.seen.length === 1);
  expect(await discard(`outbox_events/${fixedId(3)}`)).toEqual([200, { discarded: false }]);
  expect(await discard(`outbox_events/${fixedId(9)}`)).toMatchObject([404, { code: "dead-letter-not-found" }]);
  expect(await discard("inbox_dlq/x")).toMatchObject([404, {}]);
  expect(await discard("users/1")).toMatchObject([
    404,
    { detail: expect.stringContaining("outbox_events, inbox_dlq") },
  ]);
});

test("a process with the role maintenance deletes published and processed events by age", async () => {
  await using t = await testDatabase();
  const sample = sampleService();
  const env = { DATABASE_URL: t.url, SAMPLE_PORT: "0", LOG_LEVEL: "silent" };
  await sample.migrate(env, { dryRun: false });
  const db = t.open({ schema: "sample" });
  await db.query(`insert into processed_events (consumer, event_id, processed_at)
                  values ('sample', gen_random_uuid(), now() - interval '15 days')`);
  await db.query(`insert into idempotency_keys (scope, idem_key, request_hash, expires_at)
                  values ('s', 'k', sha256(''), now() - interval '1 second')`);
  const left = async () =>
    (await db.query(`select from processed_events union all select from idempotency_keys`)).rowCount ?? 0;
  const openBus = async () => memoryBus(new MemoryBroker());
  {
    await using _ = await sample.start({ ...env, SAMPLE_ROLES: "api,relay,consumer" }, { openBus });
  }
  expect(await left()).toBe(2);
  await using _ = await sample.start({ ...env, SAMPLE_ROLES: "maintenance" }, { openBus });
  await until("old rows are deleted", async () => (await left()) === 0);
});

test("rows are kept as long as the settings say", async () => {
  await using t = await testDatabase();
  const sample = sampleService();
  const env = {
    DATABASE_URL: t.url,
    SAMPLE_PORT: "0",
    LOG_LEVEL: "silent",
    SAMPLE_OUTBOX_KEEP_DAYS: "2",
    SAMPLE_IDEMPOTENCY_KEEP_HOURS: "3",
    SAMPLE_PROCESSED_KEEP_DAYS: "20",
    SAMPLE_INBOX_DLQ_KEEP_DAYS: "40",
  };
  await sample.migrate(env, { dryRun: false });
  const db = t.open({ schema: "sample" });
  // Of each table one row on either side of its setting, and both on the same side of its default.
  await db.query(`
    insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, published_at)
    select gen_random_uuid(), 'T', 's', days::text, 1, '{}', 'PUBLISHED', now() - days * interval '1 day'
      from unnest(array[1, 3]) days;
    insert into processed_events (consumer, event_id, processed_at)
    select 'sample', gen_random_uuid(), now() - days * interval '1 day' from unnest(array[19, 21]) days;
    insert into inbox_attempts (consumer, event_id, attempt_count, updated_at)
    select 'sample', gen_random_uuid(), 1, now() - days * interval '1 day' from unnest(array[19, 21]) days;
    insert into inbox_dlq (consumer, event_id, event_type, subject, aggregate_key, occurred_at, headers, payload, status, resolved_at)
    select 'sample', gen_random_uuid(), 'T', 's', 'k', 'never', '{}', '', 'RESOLVED', now() - days * interval '1 day'
      from unnest(array[39, 41]) days`);
  const ages = async () =>
    (
      await db.query<{ days: number }>(`
        select round(extract(epoch from now() - since) / 86400)::int as days
          from (select 1, published_at from outbox_events union all select 2, processed_at from processed_events
                union all select 3, updated_at from inbox_attempts union all select 4, resolved_at from inbox_dlq) r(n, since)
         order by n, days`)
    ).rows.map(({ days }) => days);
  expect(await ages()).toEqual([1, 3, 19, 21, 19, 21, 39, 41]);
  await using _ = await sample.start(env, { openBus: async () => memoryBus(new MemoryBroker()) });
  await expect.poll(ages).toEqual([1, 19, 19, 39]);
  await sample.runOnce();
  const { rows } = await db.query(
    `select (extract(epoch from expires_at - now()) / 3600)::float8 as hours from idempotency_keys`,
  );
  expect(rows).toEqual([{ hours: expect.closeTo(3, 1) }]);
});

test("a service keeps published events no longer than they may be published again", () => {
  const { configErrors } = sampleService();
  const env = { DATABASE_URL: "postgres://localhost/x", SAMPLE_OUTBOX_KEEP_DAYS: "8" };
  expect(configErrors(env)).toEqual([
    expect.stringMatching(/^SAMPLE_OUTBOX_KEEP_DAYS is more than EVENT_REDRIVE_DAYS \(7\): /),
  ]);
  expect(configErrors({ ...env, EVENT_REDRIVE_DAYS: "8", SAMPLE_PROCESSED_KEEP_DAYS: "15" })).toEqual([]);
  const wrong = { SAMPLE_OUTBOX_KEEP_DAYS: "0", SAMPLE_IDEMPOTENCY_KEEP_HOURS: "1d", SAMPLE_INBOX_DLQ_KEEP_DAYS: "-1" };
  expect(configErrors({ ...env, ...wrong })).toEqual([
    'SAMPLE_OUTBOX_KEEP_DAYS is "0" and should be a whole number from 1 to 3650',
    'SAMPLE_IDEMPOTENCY_KEEP_HOURS is "1d" and should be a whole number from 1 to 8760',
    'SAMPLE_INBOX_DLQ_KEEP_DAYS is "-1" and should be a whole number from 1 to 3650',
  ]);
});

test("roles and settings of workers follow from what a service declares", () => {
  const { configErrors } = sampleService();
  const env = { DATABASE_URL: "postgres://localhost/x" };
  expect(configErrors({ ...env, SAMPLE_ROLES: "api,cleaner,consumer,maintenance,relay" })).toEqual([]);
  expect(configErrors({ ...env, SAMPLE_ROLES: "upkeep" })).toEqual([
    "SAMPLE_ROLES should name one or more of api, cleaner, consumer, maintenance, relay, with commas between them",
  ]);
  expect(configErrors({ ...env, SAMPLE_LEASE_MS: "1", SAMPLE_CLEANER_POLL_MS: "soon" })).toEqual([
    'SAMPLE_LEASE_MS is "1" and should be a whole number from 1000 to 86400000',
    'SAMPLE_CLEANER_POLL_MS is "soon" and should be a whole number from 10 to 60000',
  ]);
});

test("inbox retention shorter than broker retention is a settings error", () => {
  const { configErrors } = sampleService();
  const env = { DATABASE_URL: "postgres://localhost/x" };
  expect(configErrors({ ...env, SAMPLE_PROCESSED_KEEP_DAYS: "14" })).toEqual([]);
  expect(configErrors({ ...env, SAMPLE_PROCESSED_KEEP_DAYS: "13" })).toEqual([
    expect.stringMatching(/^SAMPLE_PROCESSED_KEEP_DAYS is too small: .* keep them for at least 14 days$/),
  ]);
});

test("listeners are on loopback; on other addresses the ops listener has metrics, and /debug only if asked for", async () => {
  await using t = await testDatabase();
  const sample = sampleService();
  const shared = { DATABASE_URL: t.url, SAMPLE_PORT: "0", LOG_LEVEL: "silent" };
  await sample.migrate(shared, { dryRun: false });
  const openBus = async () => memoryBus(new MemoryBroker());
  /** The host of the service, its answer to /debug/work, and those of the ops listener to all paths. */
  const statuses = async (env: Record<string, string>) => {
    await using running = await sample.start({ ...shared, ...env }, { openBus });
    const addresses = ["/debug/work", ...["/metrics", "/livez", "/debug/work", "/debug/outbox/failed"]].map(
      (path, index) => (index === 0 ? running.url : running.opsUrl) + path,
    );
    const answers = await Promise.all(addresses.map(async (address) => (await fetch(address)).status));
    return [new URL(running.url).hostname, ...answers].join(" ");
  };
  const outside = { SAMPLE_HOST: "127.0.0.2", TODOKE_HOST: "127.0.0.9", TODOKE_OPS_HOST: "0.0.0.0" };
  const dev = { TODOKE_DEV: "true" };
  const cases: [env: Record<string, string>, expected: string][] = [
    [{}, "127.0.0.1 404 200 200 200 200"],
    [outside, "127.0.0.2 404 200 200 403 403"],
    [{ ...outside, SAMPLE_OPS_DEBUG: "true" }, "127.0.0.2 404 200 200 200 200"],
    // The setting of the service decides before that of all services.
    [{ ...outside, TODOKE_OPS_DEBUG: "true", SAMPLE_OPS_DEBUG: "false" }, "127.0.0.2 404 200 200 403 403"],
    [{ ...outside, SAMPLE_OPS_HOST: "127.0.0.1" }, "127.0.0.2 404 200 200 200 200"],
    // `todoke dev` has them on the public port too.
    [dev, "127.0.0.1 200 200 200 200 200"],
    [{ ...dev, TODOKE_HOST: "0.0.0.0" }, "127.0.0.1 404 200 200 200 200"],
    [{ ...dev, TODOKE_HOST: "0.0.0.0", TODOKE_OPS_DEBUG: "true" }, "127.0.0.1 200 200 200 200 200"],
  ];
  expect(await Promise.all(cases.map(([env]) => statuses(env)))).toEqual(cases.map(([, expected]) => expected));
});

test("an address with a port or a scheme is no host to listen on", () => {
  const { configErrors } = sampleService();
  const env = { DATABASE_URL: "postgres://localhost/x" };
  expect(configErrors({ ...env, SAMPLE_HOST: "localhost", TODOKE_OPS_HOST: "::" })).toEqual([]);
  expect(
    configErrors({ ...env, TODOKE_HOST: "0.0.0.0:80", SAMPLE_OPS_HOST: "http://x", SAMPLE_OPS_DEBUG: "1" }),
  ).toEqual([
    expect.stringMatching(/^TODOKE_HOST is "0.0.0.0:80" and should be an address of this machine without a port, /),
    expect.stringMatching(/^SAMPLE_OPS_HOST is "http:\/\/x" and should be an address/),
    "SAMPLE_OPS_DEBUG should be true or false",
  ]);
});
