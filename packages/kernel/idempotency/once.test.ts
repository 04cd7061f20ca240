import fc from "fast-check";
import { expect, test } from "vitest";
import { CommitUnknown, type Db, type Tx, transaction } from "../db/index.ts";
import { openFaultProxy, testDatabase, until } from "../testing/index.ts";
import { canonicalJson, digestJson, type IdempotencyKey, once } from "./index.ts";

const keyFor = (body: unknown, more: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
  scope: "shop POST /v1/things",
  key: "key-1",
  requestHash: digestJson(body),
  ...more,
});

const setup = () =>
  testDatabase({
    tables: `create table things (id int generated always as identity primary key, name text)`,
  });

const create = (name: string) => async (tx: Tx) => {
  const { rows } = await tx.query<{ id: number }>(`insert into things (name) values ($1) returning id`, [name]);
  return { status: 201, body: { id: rows[0]?.id, name } };
};

/** For duplicates that must get a response: a machine that stalls for seconds must not make them time out. */
const patient = { waitMs: 60_000 };

const effects = async (db: Db) => Number((await db.query(`select count(*) from things`)).rows[0].count);

test("64 concurrent requests with one key have one effect and equal responses", async () => {
  await using t = await setup();
  const processes = [t.open(), t.open()];
  const requests = Array.from({ length: 64 }, (_, i) =>
    once(processes[i % 2] as Db, keyFor({ name: "a" }), create("a"), patient),
  );
  const responses = await Promise.all(requests);
  expect(await effects(t.db)).toBe(1);
  expect(new Set(responses.map((a) => `${a.status} ${a.contentType} ${a.body.toString("hex")}`)).size).toBe(1);
  expect(responses.filter((response) => !response.replayed).length).toBe(1);
});

test("the same key with another body is a conflict and has no effect", async () => {
  await using t = await setup();
  await once(t.db, keyFor({ name: "a" }), create("a"));
  await expect(once(t.db, keyFor({ name: "b" }), create("b"))).rejects.toMatchObject({
    status: 409,
    code: "idempotency-conflict",
  });
  expect(await effects(t.db)).toBe(1);
});

test("the same key of another caller or on another route is another key", async () => {
  await using t = await setup();
  const scopes = ["shop POST /v1/things", "game POST /v1/things", "shop POST /v1/others"];
  const responses = await Promise.all(scopes.map((scope) => once(t.db, keyFor({ name: "a" }, { scope }), create("a"))));
  expect(responses.every((response) => !response.replayed)).toBe(true);
  const again = await Promise.all(scopes.map((scope) => once(t.db, keyFor({ name: "a" }, { scope }), create("a"))));
  expect(again.map(({ body }) => body)).toEqual(responses.map(({ body }) => body)); // each its own
  expect(await effects(t.db)).toBe(3);
});

test("a failed request leaves no trace, and the next one with its key runs", async () => {
  await using t = await setup();
  const failing = once(t.db, keyFor({}), async (tx) => {
    await create("a")(tx);
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(await effects(t.db)).toBe(0);
  expect((await once(t.db, keyFor({}), create("a"))).replayed).toBe(false);
});

test("a duplicate waits for the first request in any process and replays its response", async () => {
  await using t = await setup();
  for (const [other, key] of [
    [t.db, "here"],
    [t.open(), "elsewhere"],
  ] as const) {
    const finish = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const first = once(t.db, keyFor({}, { key }), async (tx) => {
      started.resolve();
      await finish.promise;
      return create("a")(tx);
    });
    await started.promise;
    const second = once(other, keyFor({}, { key }), create("never"), patient);
    finish.resolve();
    expect((await second).body).toEqual((await first).body);
    expect((await second).replayed).toBe(true);
  }
});

test("a duplicate of a slow request in any process is rejected with Retry-After", async () => {
  await using t = await setup();
  for (const [other, key] of [
    [t.db, "here"],
    [t.open({ lockTimeoutMs: 0 }), "elsewhere"], // Without a lock timeout of its own: only `waitMs` ends the wait.
  ] as const) {
    const finish = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const first = once(t.db, keyFor({}, { key }), async (tx) => {
      await tx.query("select 1");
      started.resolve();
      await finish.promise;
      return create("a")(tx);
    });
    await started.promise;
    const impatient = once(other, keyFor({}, { key }), create("never"), { waitMs: 100 });
    await expect(impatient).rejects.toMatchObject({
      status: 409,
      code: "idempotency-in-progress",
      retryAfterSeconds: 1,
    });
    finish.resolve();
    await first;
  }
});

test("a hundred duplicates of a slow request do not block the pool", async () => {
  await using t = await setup();
  const db = t.open({ poolMax: 2 });
  const finish = Promise.withResolvers<void>();
  const work = async (tx: Tx) => {
    await finish.promise;
    return create("slow")(tx);
  };
  const slow = Array.from({ length: 100 }, () => once(db, keyFor({}), work, patient));
  const other = await once(db, keyFor({}, { key: "other" }), create("other"));
  expect(other.status).toBe(201);
  finish.resolve();
  expect((await Promise.all(slow)).filter((response) => !response.replayed).length).toBe(1);
});

test.each(["request", "answer"] as const)(
  "a retry has exactly one effect if the %s of COMMIT is lost",
  async (lost) => {
    await using t = await setup();
    await using proxy = await openFaultProxy(t.url);
    const db = t.open({ url: proxy.url });
    await once(db, keyFor({}, { key: "warm-up" }), create("warm-up"));
    proxy.cutNext("commit", lost);
    await expect(once(db, keyFor({}), create("a"))).rejects.toBeInstanceOf(CommitUnknown);
    const retried = await once(db, keyFor({}), create("a"));
    expect(retried.replayed).toBe(lost === "answer");
    expect(await effects(t.db)).toBe(2); // With the warm-up.
  },
);

test("concurrent requests with an expired key run once", async () => {
  await using t = await setup();
  const first = await once(t.open({ idempotencyMs: 1 }), keyFor({}), create("a"));
  await until(
    "it has expired",
    async () => (await t.db.query(`select from idempotency_keys where expires_at > clock_timestamp()`)).rowCount === 0,
  );
  const processes = [t.open(), t.open()];
  const again = await Promise.all(
    Array.from({ length: 16 }, (_, i) => once(processes[i % 2] as Db, keyFor({}), create("a"), patient)),
  );
  expect(await effects(t.db)).toBe(2);
  expect(again.every(({ body }) => !body.equals(first.body))).toBe(true);
});

test("a duplicate runs if the response expires while it waits", async () => {
  await using t = await setup();
  const db = t.open({ idempotencyMs: 0 });
  const responses = await Promise.all([1, 2].map(() => once(db, keyFor({}), create("a"), patient)));
  expect(responses.map(({ replayed }) => replayed)).toEqual([false, false]);
  expect(await effects(t.db)).toBe(2);
});

test("a key is never visible without its response", async () => {
  await using t = await setup();
  let isReading = true;
  const reader = (async () => {
    while (isReading) {
      const { rowCount } = await t.db.query(`select from idempotency_keys where response_status is null`);
      expect(rowCount).toBe(0);
    }
  })();
  const db = t.open();
  await Promise.all(Array.from({ length: 100 }, (_, i) => once(db, keyFor({}, { key: `k${i}` }), create("a"))));
  isReading = false;
  await reader;
});

test("two bodies have the same digest if and only if they are equal JSON values", () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, each]) => [name, shuffled(each)]),
    );
  };
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(digestJson(shuffled(a))).toEqual(digestJson(a));
      expect(JSON.parse(canonicalJson(a))).toEqual(JSON.parse(JSON.stringify(a)));
      const same = canonicalJson(JSON.parse(JSON.stringify(a))) === canonicalJson(JSON.parse(JSON.stringify(b)));
      expect(digestJson(a).equals(digestJson(b))).toBe(same);
    }),
  );
  // RFC 8785, section 3.2.3: by UTF-16 code units
  expect(
    canonicalJson({ "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }),
  ).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
});

test("the answer is stored with the effect of the caller's own transaction or not at all", async () => {
  await using t = await setup();
  await once(t.db, keyFor({}), create("a"));
  await transaction(t.db, (tx) => tx.query(`select 1`));
  const { rows } = await t.db.query(
    `select response_status, convert_from(response_body, 'utf8') as body from idempotency_keys`,
  );
  expect(rows).toEqual([{ response_status: 201, body: '{"id":1,"name":"a"}' }]);
});
