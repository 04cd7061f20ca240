import { getSqlState } from "@todoke/kernel/db";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { hashApiKey, newApiKey } from "./api-keys.ts";
import { createKey, findLiveKeys, futureTime, listKeys, type NewKey, revokeKeys } from "./api-keys-store.ts";
import { type Scope, scopes } from "./callers.ts";

const setup = () => testDatabase({ sets: [{ name: "http", dir: new URL("./migrations/", import.meta.url) }] });

const key = (n: number, more: Partial<NewKey> = {}): NewKey => ({
  keyId: fixedId(n),
  holder: "shop",
  scopes: ["read"],
  sha256: hashApiKey(`tdk_${n}`),
  createdBy: "aki",
  ...more,
});

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error) => [getSqlState(error), error.constraint],
  );

test("a key is 256 random bits behind a prefix", () => {
  const made = new Set(Array.from({ length: 1_000 }, newApiKey));
  expect(made.size).toBe(1_000);
  for (const each of made) expect(each).toMatch(/^tdk_[\w-]{43}$/);
});

test("the table accepts known scopes, whole hashes and valid holder names only", async () => {
  await using t = await setup();
  expect(await createKey(t.db, key(1, { scopes }))).toBe(true);
  for (const bad of [["fly"], ["read", "fly"], []])
    expect(await refusal(createKey(t.db, key(2, { scopes: bad as Scope[] })))).toEqual([
      "23514",
      "api_key_scopes_are_known",
    ]);
  expect(await refusal(createKey(t.db, key(2, { sha256: "00" })))).toEqual(["23514", "api_key_hash_is_whole"]);
  for (const holder of ["", "user:1", "service:gateway-bff", "a b", "A", "x".repeat(64), "a\n"])
    expect(await refusal(createKey(t.db, key(2, { holder })))).toEqual(["23514", "api_key_holder_is_a_name"]);
  for (const perSecond of [0, -1, 1_000_001])
    expect(await refusal(createKey(t.db, key(2, { perSecond })))).toEqual(["23514", "api_key_rate_is_positive"]);
  const past = key(2, { expiresAt: "2020-01-01T00:00:00Z" });
  expect(await refusal(createKey(t.db, past))).toEqual(["23514", "api_key_expires_after_it_is_made"]);
});

test("creating a key is idempotent; another or a revoked key is not overwritten", async () => {
  await using t = await setup();
  const expiring = key(1, { expiresAt: "2999-01-01T00:00:00Z" });
  expect(await createKey(t.db, expiring)).toBe(true);
  expect(await createKey(t.db, { ...expiring, createdBy: "other" })).toBe(true);
  for (const other of [
    { holder: "game" },
    { scopes },
    { sha256: hashApiKey("b") },
    { expiresAt: "2999-01-02T00:00:00Z" },
    { perSecond: 5 },
  ])
    expect(await createKey(t.db, { ...expiring, ...(other as Partial<NewKey>) })).toBe(false);
  expect(await createKey(t.db, key(1))).toBe(false);
  expect(await refusal(createKey(t.db, { ...expiring, keyId: fixedId(2) }))).toEqual([
    "23505",
    "api_keys_one_per_secret",
  ]);
  await revokeKeys(t.db, { keyId: fixedId(1) }, { by: "aki" });
  expect(await createKey(t.db, expiring)).toBe(false);
  expect(await listKeys(t.db, { all: true, limit: 10 })).toMatchObject([
    {
      holder: "shop",
      created_by: "aki",
      scopes: ["read"],
      state: "revoked",
      expires_at: "2999-01-01T00:00:00.000000Z",
    },
  ]);
});

test("one key or all of a holder are revoked once, with who and why", async () => {
  await using t = await setup();
  for (const each of [key(1), key(2), key(3), key(4, { holder: "game" })]) await createKey(t.db, each);
  expect(await revokeKeys(t.db, { keyId: fixedId(1) }, { by: "aki", reason: "leaked" })).toEqual([fixedId(1)]);
  expect(await revokeKeys(t.db, { keyId: fixedId(1) }, { by: "other" })).toEqual([]);
  expect((await revokeKeys(t.db, { holder: "shop" }, { by: "aki" })).sort()).toEqual([fixedId(2), fixedId(3)]);
  expect(await revokeKeys(t.db, { holder: "nobody" }, { by: "aki" })).toEqual([]);
  expect(await listKeys(t.db, { all: false, limit: 10 })).toMatchObject([{ holder: "game", revoked_at: null }]);
  const [first] = await listKeys(t.db, { of: { keyId: fixedId(1) }, all: true, limit: 10 });
  expect(first).toMatchObject({ state: "revoked", revoked_by: "aki", revoked_reason: "leaked" });
  expect(await listKeys(t.db, { of: { holder: "shop" }, all: true, limit: 2 })).toHaveLength(2);
});

test("an expired key is not live and is listed as expired", async () => {
  await using t = await setup();
  await createKey(t.db, key(1));
  await t.db.query(`update api_keys set created_at = now() - interval '2 days', expires_at = now() - interval '1 day'`);
  expect(await findLiveKeys(t.db, [key(1).sha256])).toEqual([]);
  expect(await listKeys(t.db, { all: false, limit: 10 })).toEqual([]);
  expect(await listKeys(t.db, { all: true, limit: 10 })).toMatchObject([{ state: "expired" }]);
});

test("the future is decided by the database's clock", async () => {
  await using t = await setup();
  const { rows } = await t.db.query(`select now() + interval '90 days' as time`);
  const time = await futureTime(t.db, { inDays: 90 });
  expect(Math.abs(Date.parse(time ?? "") - rows[0].time.getTime())).toBeLessThan(60_000);
  expect(await futureTime(t.db, { at: "2999-01-31T00:00:00Z" })).toBe("2999-01-31T00:00:00.000000Z");
  expect(await futureTime(t.db, { at: "2020-01-31T00:00:00Z" })).toBeUndefined();
});

test("keys are found by an index probe, also in an empty table", async () => {
  await using t = await setup();
  const db = t.open({ poolMax: 1 });
  await findLiveKeys(db, [key(1).sha256]);
  const plan = await db.query(`explain (costs off) execute "find api keys"('{}')`);
  expect(JSON.stringify(plan.rows)).toContain("Index Scan using api_keys_one_per_secret");
});
