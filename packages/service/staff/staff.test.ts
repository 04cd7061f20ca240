import { randomUUID } from "node:crypto";
import { buildHttpApp, httpMigrations, type Principal, type Role, recordStaffAct } from "@todoke/http";
import { readDelays } from "@todoke/kernel/claims";
import { type Db, type Queryable, transaction } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { outboxClaims, outboxDeadLetters } from "@todoke/kernel/outbox";
import { deleteFinished, retentionPolicies } from "@todoke/kernel/retention";
import { fixedId, longTimeouts, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { runStep } from "./batch-worker.ts";
import type { StaffRouteDeps } from "./deps.ts";
import { changesReader, overviewReader, staffRoutes } from "./index.ts";
import { mergeSamples, quantileMs } from "./merge-samples.ts";
import { insertSample } from "./sample-store.ts";

const table = "outbox_events";
const deadLetters = [outboxDeadLetters];

async function setup(readPool: Parameters<Awaited<ReturnType<typeof testDatabase>>["open"]>[0] = longTimeouts) {
  const t = await testDatabase({ sets: [kernelMigrations, httpMigrations], pools: longTimeouts });
  const app = await buildHttpApp({ title: "things", version: "0", log: { level: "silent" } });
  const changed: string[] = [];
  const reads = t.open(readPool);
  const deps = {
    app,
    prefix: "/v1/admin",
    hide: false,
    service: "things",
    db: t.db,
    reads,
    deadLetters,
    onChanged: (name) => void changed.push(name),
    wakeBatches: () => {},
    authenticate: ({ headers }): Principal => {
      const [name = "", ...roles] = String(headers.authorization).split(" ");
      return { kind: "user", name: `user:${name}`, userId: name, roles: roles as Role[] };
    },
  } satisfies StaffRouteDeps;
  const health = {
    report: async () => ({ status: "ready" as const, checks: [{ name: "database", ok: true, ms: 1 }] }),
  };
  const delays = async (db: Queryable) => [await readDelays(db, outboxClaims.table)];
  staffRoutes(deps, overviewReader({ service: "things", reads, deadLetters, health, delays }));
  const call = async (
    as: string,
    method: "GET" | "POST",
    url: string,
    payload?: object,
    key: string = randomUUID(),
  ) => {
    const response = await app.inject({
      method,
      url: `/v1/admin${url}`,
      headers: { authorization: as, "idempotency-key": key },
      ...(payload && { payload }),
    });
    const { "retry-after": retryAfter, "idempotency-replayed": replayed } = response.headers;
    return { status: response.statusCode, replayed, retryAfter, ...response.json() };
  };
  const count = async (sql: string) => Number((await t.db.query(`select count(*) from ${sql}`)).rows[0].count);
  return {
    ...t,
    changed,
    call,
    dead: () => count("outbox_events where status = 'FAILED'"),
    redrives: () => count("redrives"),
    acts: () => count("staff_acts"),
    async [Symbol.asyncDispose]() {
      await app.close();
      await t[Symbol.asyncDispose]();
    },
  };
}

const olive = "olive OPERATOR";
const vera = "vera VIEWER";
const reason = "the receiver works again";

/** FAILED events 1 to n; the errors of odd and even ones differ in more than numbers. */
async function insertFailed(db: Db, n: number, from = 1): Promise<void> {
  await db.query(
    `insert into outbox_events (event_id, event_type, subject, aggregate_key, version, payload, status, attempt_count, last_error)
     select (lpad(n::text, 8, '0') || '-0000-7000-8000-000000000000')::uuid, case n % 3 when 0 then 'B' else 'A' end, 's', 'a' || n, 1,
            jsonb_build_object('user_id', 'u' || n), 'FAILED', 10,
            case n % 2 when 0 then 'HTTP 500 from receiver ' || n else 'no route ' || md5(n::text) end || E'\\nat line ' || n
       from generate_series($1::int, $2::int) n order by n`,
    [from, from + n - 1],
  );
}

const idOf = (n: number) => `${String(n).padStart(8, "0")}-0000-7000-8000-000000000000`;

test("dead letters are grouped by error: numbers and ids in it do not matter", async () => {
  await using t = await setup();
  await insertFailed(t.db, 5);
  const { groups, tables } = await t.call(vera, "GET", "/dead-letters/groups");
  expect(groups).toMatchObject([
    { service: "things", table, error: "no route #", count: 3, example_id: idOf(5) },
    { service: "things", table, error: "HTTP # from receiver #", count: 2, example_id: idOf(4) },
  ]);
  expect(tables).toEqual([{ service: "things", table, dead: 5, capped: false }]);
  const [odd] = groups;
  const ids = async (query: string) => {
    const { dead_letters } = await t.call(vera, "GET", `/dead-letters/${table}?${query}`);
    return (dead_letters as { id: string }[]).map(({ id }) => id);
  };
  expect(await ids(`group=${odd.group}`)).toEqual([idOf(1), idOf(3), idOf(5)]);
  expect(await ids(`group=${odd.group}&event_type=B`)).toEqual([idOf(3)]);
  expect(await ids("user_id=u4")).toEqual([idOf(4)]);
  expect(await t.call(vera, "GET", `/dead-letters/${table}:preview?group=${odd.group}`)).toMatchObject({
    count: 3,
    capped: false,
    through: "5",
  });
});

test("a row is shown with its payload and redrives, while it is dead, redriven and discarded", async () => {
  await using t = await setup();
  await insertFailed(t.db, 2);
  const show = (n: number) => t.call(vera, "GET", `/dead-letters/${table}/${idOf(n)}`);
  expect(await show(1)).toMatchObject({ state: "dead", payload: { user_id: "u1" }, fields: { status: "FAILED" } });
  await t.call(olive, "POST", `/dead-letters/${table}:redrive`, { ids: [idOf(1)], reason });
  expect(await show(1)).toMatchObject({ state: "not dead", redrives: [{ redriven_by: "user:olive", reason }] });
  await t.call(olive, "POST", `/dead-letters/${table}:discard`, { ids: [idOf(2)], reason });
  expect(await show(2)).toMatchObject({
    state: "discarded",
    payload: { user_id: "u2" },
    discarded: { by: "user:olive", reason, copy_removed_at: null },
  });
  await deleteFinished(t.db, retentionPolicies.discardedCopies(0));
  expect(await show(2)).toMatchObject({
    state: "discarded",
    event_type: "A",
    attempt_count: 10,
    payload: null,
    discarded: { by: "user:olive", reason, copy_removed_at: expect.any(String) },
  });
  expect(await show(3)).toMatchObject({ status: 404, code: "dead-letter-not-found" });
  expect(await t.call(vera, "GET", "/dead-letters/nothing")).toMatchObject({ status: 404, code: "not-found" });
});

test("viewers read and operators act: a viewer's act is rejected and leaves nothing", async () => {
  await using t = await setup();
  await insertFailed(t.db, 1);
  const acts = [
    [`/dead-letters/${table}:redrive`, { ids: [idOf(1)], reason }],
    [`/dead-letters/${table}:discard`, { ids: [idOf(1)], reason }],
    ["/dead-letter-batches", { act: "redrive", table, all: true, through: "1", reason }],
    [`/dead-letter-batches/${fixedId(1)}:stop`, { reason }],
  ] as const;
  for (const [url, body] of acts) {
    for (const caller of [vera, "player USER"])
      expect(await t.call(caller, "POST", url, body)).toMatchObject({ status: 403, code: "forbidden" });
    expect(await t.call(olive, "POST", url, { ...body, reason: "" })).toMatchObject({ status: 400 });
  }
  expect(await t.call("player USER", "GET", "/audit-log")).toMatchObject({ status: 403 });
  expect([await t.dead(), await t.redrives(), await t.acts()]).toEqual([1, 0, 0]);
});

test("an act and its record are one commit: if the record cannot be written, nothing has happened", async () => {
  await using t = await setup();
  await insertFailed(t.db, 1);
  await t.db.query("alter table staff_acts add constraint refused check (false) not valid");
  const act = () => t.call(olive, "POST", `/dead-letters/${table}:redrive`, { ids: [idOf(1)], reason }, "k");
  expect(await act()).toMatchObject({ status: 500 });
  expect([await t.dead(), await t.redrives(), await t.acts()]).toEqual([1, 0, 0]);
  await t.db.query("alter table staff_acts drop constraint refused");
  expect(await act()).toMatchObject({ status: 200, applied: [idOf(1)], unchanged: [] });
  expect(await act()).toMatchObject({ status: 200, applied: [idOf(1)], replayed: "true" });
  expect([await t.dead(), await t.redrives(), await t.acts()]).toEqual([0, 1, 1]);
  const { acts } = await t.call(vera, "GET", "/audit-log");
  expect(acts).toMatchObject([
    { actor: "user:olive", role: "OPERATOR", act: "redriveDeadLetters", target: `${table}/${idOf(1)}`, reason },
  ]);
});

test("of two operators who redrive and discard a row at once, one does, and each learns which", async () => {
  await using t = await setup();
  await insertFailed(t.db, 20);
  const ids = Array.from({ length: 20 }, (_, index) => idOf(index + 1));
  const results = await Promise.all([
    t.call(olive, "POST", `/dead-letters/${table}:redrive`, { ids, reason }),
    t.call("omar OPERATOR", "POST", `/dead-letters/${table}:discard`, { ids: ids.toReversed(), reason }),
  ]);
  expect(results.flatMap(({ applied }) => applied).sort()).toEqual(ids);
  expect(results.flatMap(({ unchanged }) => unchanged).sort()).toEqual(ids);
  expect([await t.dead(), await t.redrives()]).toEqual([0, 20]);
});

test("a batch that dies in a step goes on where it was, and redrives no row twice", async () => {
  await using t = await setup();
  await insertFailed(t.db, 50);
  const { through } = await t.call(vera, "GET", `/dead-letters/${table}:preview`);
  const body = { act: "redrive", table, filter: { error: "HTTP" }, through, reason };
  const batch = await t.call(olive, "POST", "/dead-letter-batches", body, "k");
  expect(batch).toMatchObject({ status: 201, state: "RUNNING", total: 25, examined: 0 });
  expect(await t.call(olive, "POST", "/dead-letter-batches", body, "k")).toMatchObject({
    replayed: "true",
    batch_id: batch.batch_id,
  });
  await insertFailed(t.db, 10, 51); // They die after the preview.

  const step = (db: Db = t.db) => runStep({ db, deadLetters, onChanged: () => {}, rows: 10 });
  await step();
  // Its rows die again at once, and another step is cut off before its commit.
  await t.db.query("update outbox_events set status = 'FAILED' where status = 'PENDING'");
  const dying = t.open({ poolMax: 1 });
  const { rows } = await dying.query("select pg_backend_pid() as pid");
  const killing = {
    ...outboxDeadLetters,
    redrive: async (...args: Parameters<typeof outboxDeadLetters.redrive>) => {
      const redriven = await outboxDeadLetters.redrive(...args);
      await t.db.query("select pg_terminate_backend($1)", [rows[0].pid]);
      return redriven;
    },
  };
  await expect(runStep({ db: dying, deadLetters: [killing], onChanged: () => {}, rows: 10 })).rejects.toThrow();
  expect(await t.redrives()).toBe(10);

  // Two processes share the rest.
  const others = [t.open({ poolMax: 1 }), t.open({ poolMax: 1 })];
  for (let left = 5; left > 0; left--) await Promise.all(others.map((db) => step(db)));
  expect(await t.call(vera, "GET", `/dead-letter-batches/${batch.batch_id}`)).toMatchObject({
    state: "DONE",
    examined: 25,
    applied: 25,
    error: null,
  });
  expect(await t.redrives()).toBe(25);
  const { rows: twice } = await t.db.query("select of_key from redrives group by of_key having count(*) > 1");
  expect(twice).toEqual([]);
  // Ten that died again, those that died later, and those of the other error.
  expect(await t.dead()).toBe(10 + 10 + 25);
  expect(await step()).toBe(false);
});

test("a row below the position of the preview that dies while the batch runs is left alone", async () => {
  await using t = await setup();
  await insertFailed(t.db, 6);
  // The first has an earlier position, and its last attempt runs at the preview.
  await t.db.query("update outbox_events set status = 'PENDING' where position = 1");
  const [claim] = await outboxClaims.claim(t.db, { limit: 1, leaseMs: 60_000, worker: "w" });
  await t.call(olive, "POST", "/dead-letter-batches", { act: "redrive", table, all: true, through: "6", reason }, "k");
  if (claim) await outboxClaims.settle(t.db, [{ claim: claim.claim, outcome: { kind: "dead", reason: "no" } }]);
  expect(await t.dead()).toBe(6);
  await runStep({ db: t.db, deadLetters, onChanged: () => {} });
  expect(await t.redrives()).toBe(5);
  expect(await t.dead()).toBe(1);
});

test("a batch needs a filter or the word all, and stops when an operator says so", async () => {
  await using t = await setup();
  await insertFailed(t.db, 30);
  const start = (more: object) =>
    t.call(olive, "POST", "/dead-letter-batches", { act: "discard", table, through: "30", reason, ...more });
  expect(await start({})).toMatchObject({ status: 400, errors: [{ field: "body.filter" }] });
  expect(await start({ filter: {} })).toMatchObject({ status: 400 });
  const { batch_id } = await start({ all: true });
  await runStep({ db: t.db, deadLetters, onChanged: () => {}, rows: 10 });
  const stop = () => t.call("omar OPERATOR", "POST", `/dead-letter-batches/${batch_id}:stop`, { reason: "wrong rows" });
  expect(await stop()).toMatchObject({ status: 200, state: "STOPPED", examined: 10, applied: 10 });
  expect(await stop()).toMatchObject({ status: 200, state: "STOPPED" });
  expect(await runStep({ db: t.db, deadLetters, onChanged: () => {} })).toBe(false);
  expect(await t.dead()).toBe(20);
  const { acts } = await t.call(vera, "GET", "/audit-log");
  expect((acts as { act: string; actor: string }[]).map(({ act, actor }) => [act, actor])).toEqual([
    ["stopDeadLetterBatch", "user:omar"],
    ["startDeadLetterBatch", "user:olive"],
  ]);
  expect((await t.call(vera, "GET", "/dead-letter-batches")).batches).toMatchObject([{ batch_id, state: "STOPPED" }]);
});

test("a step that fails says why, and lets other batches go first", async () => {
  await using t = await setup();
  await insertFailed(t.db, 4);
  const start = (act: string) =>
    t.call(olive, "POST", "/dead-letter-batches", {
      act,
      table,
      all: true,
      through: act === "redrive" ? "2" : "4",
      reason,
    });
  const { batch_id } = await start("redrive");
  const failing = { ...outboxDeadLetters, redrive: () => Promise.reject(new Error("no permission")) };
  const step = () => runStep({ db: t.db, deadLetters: [failing], onChanged: () => {} });
  await expect(step()).rejects.toThrow("no permission");
  expect(await t.call(vera, "GET", `/dead-letter-batches/${batch_id}`)).toMatchObject({
    state: "RUNNING",
    error: "no permission",
  });
  await start("discard");
  expect(await step()).toBe(true);
  expect(await t.dead()).toBe(0);
});

test("acts are listed newest first, by actor and by target, in pages", async () => {
  await using t = await setup();
  for (let n = 1; n <= 5; n++)
    await transaction(t.db, (tx) =>
      recordStaffAct(tx, {
        actor: { name: `user:${n % 2 ? "odd" : "even"}`, role: "ADMIN" },
        act: "doThings",
        target: `t${n % 3}`,
        reason,
        details: { n },
      }),
    );
  const numbers = async (query: string) => {
    const { acts, next_cursor } = await t.call(vera, "GET", `/audit-log?${query}`);
    return [...(acts as { details: { n: number } }[]).map(({ details }) => details.n), next_cursor];
  };
  const [first, second, cursor] = await numbers("limit=2");
  expect([first, second]).toEqual([5, 4]);
  expect((await numbers(`limit=2&cursor=${cursor}`)).slice(0, 2)).toEqual([3, 2]);
  expect(await numbers("actor=user:odd")).toEqual([5, 3, 1, undefined]);
  expect(await numbers("target=t1")).toEqual([4, 1, undefined]);
});

test("the overview has the minutes of all processes, the engines, and what needs a person with its cure", async () => {
  await using t = await setup();
  const sample = { errors: 0, boundaries: [0.01, 0.1], backlog: null, oldest_age_s: null, dead: null };
  await insertSample(t.db, "a", { ...sample, requests: 3, counts: [1, 1, 1], backlog: 5, oldest_age_s: 2, dead: 1 });
  await insertSample(t.db, "b", { ...sample, requests: 1, counts: [1, 0, 0], errors: 1 });
  await insertSample(t.db, "b", { ...sample, requests: 9, counts: [9, 0, 0] }); // The same minute again.
  await insertFailed(t.db, 2);
  const broken = (about: string) => ({ rule: "things balance", about, detail: "3 and 4" });
  await t.db.query(
    `insert into audits (name, started_at, finished_at, violations, findings) values ('things', now(), now(), 2, $1)`,
    [JSON.stringify([broken("thing 1"), broken("thing 2")])],
  );
  const { overview, needs } = await t.call(vera, "GET", "/overview");
  expect(overview).toMatchObject({
    service: "things",
    ready: true,
    engines: [{ name: "database", ok: true }],
    processes: 2,
    samples: [{ requests: 4, errors: 1, p50_ms: 10, p99_ms: 100, backlog: 5, oldest_age_s: 2, dead: 1 }],
  });
  expect(needs).toMatchObject([
    {
      kind: "dead",
      table,
      count: 2,
      capped: false,
      cure: { href: "/console/dead?service=things&table=outbox_events" },
    },
    {
      kind: "audit",
      table: null,
      count: 2,
      capped: false,
      detail: expect.stringMatching(/^broken at \d{4}-.*Z: things balance\. For example thing 1: 3 and 4$/),
      cure: { text: expect.stringContaining("todoke audit things"), href: "/console/why?id=thing%201" },
    },
  ]);
  expect(await t.call("player USER", "GET", "/overview")).toMatchObject({ status: 403 });
});

test("a minute without a sample is missing, and quantiles lie within their bucket", () => {
  expect(mergeSamples([])).toEqual([]);
  expect(quantileMs([0.1, 1], [0, 0, 0], 0.5)).toBeNull();
  expect(quantileMs([0.1, 1], [10, 0, 0], 0.5)).toBe(50);
  expect(quantileMs([0.1, 1], [0, 10, 0], 0.5)).toBe(550);
  expect(quantileMs([0.1, 1], [0, 0, 10], 0.99)).toBe(1_000);
});

test("a read that takes too long is a 503 with Retry-After, and not a bug of ours", async () => {
  await using t = await setup({ statementTimeoutMs: 50 });
  await transaction(t.db, async (tx) => {
    await tx.query("lock table api_keys in access exclusive mode");
    expect(await t.call("ada ADMIN", "GET", "/keys")).toMatchObject({
      status: 503,
      retryAfter: "1",
      detail: "the database took too long; retry, or ask for less",
    });
  });
});

test("the digest of a topic differs once something has changed that its pages show", async () => {
  await using t = await setup();
  const entries: string[] = [];
  const read = () =>
    changesReader({
      service: "things",
      reads: t.db,
      deadLetters,
      health: { report: async () => ({ status: "ready" as const, checks: [] }) },
      find: async ({ id }) => ({ entries: [], failed: entries.filter((each) => each === id) }),
    })(["u1", "u2"]);
  let before = await read();
  const changed = async () => {
    const after = await read();
    const topics = Object.keys(after).filter((topic) => after[topic] !== before[topic]);
    before = after;
    return topics.sort();
  };
  expect(await changed()).toEqual([]);
  await insertFailed(t.db, 3);
  expect(await changed()).toEqual(["dead-letters"]);
  await t.call(olive, "POST", `/dead-letters/${table}:redrive`, { ids: [idOf(1)], reason });
  expect(await changed()).toEqual(["audit-log", "dead-letters"]);
  await t.call(olive, "POST", "/dead-letter-batches", { act: "redrive", table, all: true, through: "3", reason });
  expect(await changed()).toEqual(["audit-log", "batches", "dead-letters"]);
  await runStep({ db: t.db, deadLetters, onChanged: () => {}, rows: 1 });
  expect(await changed()).toEqual(["batches", "dead-letters"]);
  await insertSample(t.db, "a", {
    requests: 0,
    errors: 0,
    boundaries: [],
    counts: [],
    backlog: null,
    oldest_age_s: null,
    dead: null,
  });
  expect(await changed()).toEqual(["overview"]);
  entries.push("u2");
  expect(await changed()).toEqual(["id:u2"]);
});
