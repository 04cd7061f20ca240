import { isUnavailable } from "@todoke/kernel/db";
import { fixedId, testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { type ApiKeysOptions, fixedKeys, hashApiKey, newApiKey, openApiKeys, readApiKeys } from "./api-keys.ts";
import { createKey, type NewKey, revokeKeys } from "./api-keys-store.ts";
import { buildHttpApp } from "./app.ts";
import { bearerAuthentication, requires } from "./callers.ts";
import { tokenVerifier } from "./tokens.ts";

const entry = (holder: string, scopes: string, secret: string) => `${holder}=${scopes}=${hashApiKey(secret)}`;
const read = (text: string) => {
  const errors: string[] = [];
  return { keys: readApiKeys({ TODOKE_API_KEYS: text }, errors), errors };
};
const migrations = { name: "http", dir: new URL("./migrations/", import.meta.url) };
const shop = { kind: "key", name: "shop", scopes: ["entitlements:write", "read"] };
/** The key of shop that is in the table. */
const stored = { ...shop, keyId: fixedId(1) };

/** A service's table with one key of shop in it. */
async function setup() {
  const t = await testDatabase({ sets: [migrations] });
  const secret = newApiKey();
  const make = (more: Partial<NewKey> = {}) =>
    createKey(t.db, {
      keyId: fixedId(1),
      holder: "shop",
      scopes: ["entitlements:write", "read"],
      sha256: hashApiKey(secret),
      createdBy: "aki",
      ...more,
    });
  await make();
  return {
    db: t.db,
    /** One connection, so that statements run in the order in which they were asked. */
    single: t.open({ poolMax: 1 }),
    secret,
    make,
    revoke: () => revokeKeys(t.db, { keyId: fixedId(1) }, { by: "aki" }),
    /** One process of the service. */
    open: (options: Partial<ApiKeysOptions> = {}) => openApiKeys({ db: t.open(), fixed: [], ...options }),
    [Symbol.asyncDispose]: () => t[Symbol.asyncDispose](),
  };
}

test("a fixed key gives its holder and scopes; any other text gives nobody", () => {
  const { keys, errors } = read(
    `${entry("shop", "entitlements:write+read", "tdk_a")}, ${entry("game", "read", "tdk_b")}`,
  );
  expect(errors).toEqual([]);
  const find = fixedKeys(keys);
  expect(find("tdk_a")).toEqual(shop);
  expect(find("tdk_b")).toEqual({ kind: "key", name: "game", scopes: ["read"] });
  for (const stranger of ["", "tdk_", "tdk_x", "TDK_A", "tdk_a ", hashApiKey("tdk_a")])
    expect(find(stranger)).toBeUndefined();
});

test("every error in TODOKE_API_KEYS is reported, without the text", () => {
  expect(read("")).toEqual({ keys: [], errors: [] });
  const { errors } = read(
    `tdk_secret,${entry("shop", "read+fly", "a")},${entry("shop", "read", "b")},${entry("shop", "read", "c")}`,
  );
  expect(errors).toEqual([
    expect.stringMatching(/entry 1 cannot be read/),
    expect.stringMatching(/shop has unknown scopes: fly/),
    expect.stringMatching(/names shop twice/),
  ]);
  expect(errors.join()).not.toContain("tdk_secret");
});

test("a key of the table is read once and then cached; fixed keys work too", async () => {
  await using t = await setup();
  const { keys } = read(entry("game", "read", "tdk_fixed"));
  const { find } = t.open({ fixed: keys });
  expect(await find(t.secret)).toEqual(stored);
  expect(find(t.secret)).toEqual(stored); // At once: no promise.
  expect(find("tdk_fixed")).toMatchObject({ name: "game" });
  expect(await find(newApiKey())).toBeUndefined();
  expect(await find(`${t.secret}a`)).toBeUndefined();
});

test("the rate of a key is found with it", async () => {
  await using t = await setup();
  const secret = newApiKey();
  await t.make({ keyId: fixedId(2), sha256: hashApiKey(secret), perSecond: 200 });
  expect(await t.open().find(secret)).toEqual({ ...shop, keyId: fixedId(2), perSecond: 200 });
});

test("text that cannot be a key costs no read", async () => {
  await using t = await setup();
  const { find } = t.open();
  for (const text of ["", "tdk_", "Basic", hashApiKey(t.secret), `tdk_${"x".repeat(253)}`, "tdk_é"])
    expect(find(text)).toBeUndefined();
});

test("a revocation or a new key takes effect at once in a process that is woken", async () => {
  await using t = await setup();
  const { find, clearCache: forget } = t.open({ cacheMs: 60_000 });
  const second = newApiKey();
  expect([await find(t.secret), await find(second)]).toEqual([stored, undefined]);
  await t.revoke();
  await t.make({ keyId: fixedId(2), sha256: hashApiKey(second) });
  forget();
  expect([await find(t.secret), await find(second)]).toEqual([undefined, { ...stored, keyId: fixedId(2) }]);
});

test.each([
  ["by those who come after it", false],
  ["by those who come meanwhile", true],
])("a read in flight during a revocation is not cached %s", async (_who, asksMeanwhile) => {
  await using t = await setup();
  const [answered, arrives] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = Object.create(t.db, {
    query: {
      value: async (...asked: [never]) => {
        const response = await t.db.query(...asked);
        answered.resolve();
        await arrives.promise;
        return response;
      },
    },
  });
  const { find, clearCache: forget } = t.open({ db: slow, cacheMs: 60_000 });
  const before = find(t.secret);
  await answered.promise;
  await t.revoke();
  forget();
  const meanwhile = asksMeanwhile ? find(t.secret) : undefined;
  arrives.resolve();
  expect(await before).toEqual(stored); // It came before the revocation had been answered.
  expect(await meanwhile).toBeUndefined();
  expect(await find(t.secret)).toBeUndefined();
});

test("a process that is not woken rejects a revoked key when its cache expires", async () => {
  await using t = await setup();
  const [patient, quick] = [t.open({ cacheMs: 60_000 }), t.open({ cacheMs: 100 })];
  for (const { find } of [patient, quick]) expect(await find(t.secret)).toEqual(stored);
  await t.revoke();
  await until("the quick one refuses it", async () => (await quick.find(t.secret)) === undefined);
  expect(patient.find(t.secret)).toEqual(stored);
});

test("an expired key is rejected, cached or not", async () => {
  await using t = await setup();
  const { find, clearCache: forget } = t.open({ cacheMs: 60_000 });
  await t.db.query(`update api_keys set expires_at = now() + interval '6 seconds'`);
  expect(await find(t.secret)).toEqual(stored);
  await until("it has expired", async () => (await find(t.secret)) === undefined);
  await t.db.query(`update api_keys set expires_at = now() + interval '1 day'`);
  forget();
  expect(await find(t.secret)).toEqual(stored);
});

test("a flood of unknown keys does not fill the memory, evict known keys or take the pool", async () => {
  await using t = await setup();
  const db = t.db;
  const { find } = t.open({ db, cacheMs: 600_000 });
  expect(await find(t.secret)).toEqual(stored);
  const strangers = Array.from({ length: 10_001 }, newApiKey);
  await Promise.all(strangers.slice(0, 6_000).map(find));
  await Promise.all(strangers.slice(6_000).map(find));
  expect(find(t.secret)).toEqual(stored);
  expect(db.totalCount).toBeLessThanOrEqual(2); // One for reads, one for the note of shop's last use.
  const again = strangers.map(find);
  const remembered = again.map((found) => !(found instanceof Promise));
  await Promise.all(again);
  expect(remembered.filter(Boolean)).toHaveLength(10_000);
  expect(remembered[0]).toBe(false);
});

test("the last use of a key is recorded at most once a minute, without delay for the caller", async () => {
  await using t = await setup();
  const { find, clearCache: forget } = t.open({ db: t.single });
  const usedAt = async (holder: string) =>
    (await t.db.query(`select last_used_at::text as at from api_keys where holder = $1`, [holder])).rows[0]?.at;
  expect(await usedAt("shop")).toBeNull();
  await find(t.secret);
  await until("it is noted", async () => (await usedAt("shop")) !== null);

  await t.db.query(`update api_keys set last_used_at = now() - interval '30 seconds'`);
  const noted = await usedAt("shop");
  await t.make({ keyId: fixedId(2), holder: "game", sha256: hashApiKey("tdk_game") });
  forget();
  await find(t.secret);
  await find("tdk_game");
  await until("that of a key which is used later is noted", async () => (await usedAt("game")) !== null);
  expect(await usedAt("shop")).toBe(noted);

  await t.db.query(`update api_keys set last_used_at = now() - interval '2 minutes' where holder = 'shop'`);
  const old = await usedAt("shop");
  forget();
  await find(t.secret);
  await until("it is noted again", async () => (await usedAt("shop")) > old);
});

test("while the database is unavailable only fixed keys work, and nothing is cached", async () => {
  await using t = await setup();
  await using away = await testDatabase({ sets: [] });
  const { keys } = read(entry("game", "read", "tdk_fixed"));
  const { find } = t.open({ db: away.open({ url: "postgres://127.0.0.1:1/none" }), fixed: keys });
  expect(find("tdk_fixed")).toMatchObject({ name: "game" });
  await expect(find(t.secret)).rejects.toSatisfy(isUnavailable);
  await expect(find(t.secret)).rejects.toSatisfy(isUnavailable);
});

test("scopes are enforced, and no key is in a response, a log line or a row", async () => {
  await using t = await setup();
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  await using app = await buildHttpApp({ title: "t", version: "0", log: { level: "debug", stream } });
  const keys = t.open();
  const tokenBearer = tokenVerifier({ audience: "test", keys: [] });
  const authenticate = bearerAuthentication({ verifyApiKey: keys.find, verifyToken: tokenBearer });
  app.get(
    "/mine",
    { ...requires(authenticate, { key: "read" }), schema: { operationId: "mine" } },
    ({ caller }) => caller,
  );
  app.get(
    "/points",
    { ...requires(authenticate, { key: "points:write" }), schema: { operationId: "points" } },
    () => "",
  );
  const stranger = newApiKey();
  const get = (url: string, key: string) => app.inject({ url, headers: { authorization: `Bearer ${key}` } });
  const responses = [await get("/mine", t.secret), await get("/points", t.secret), await get("/mine", stranger)];
  await t.db.query(`alter table api_keys rename column holder to other`);
  keys.clearCache();
  responses.push(await get("/mine", t.secret));
  expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 403, 401, 500]);
  expect(responses[1]?.json().detail).toBe("the API key of shop does not have the scope points:write");
  const rows = await t.db.query(`select k::text as row from api_keys k`);
  const everything = [...lines, ...responses.map(({ body }) => body), JSON.stringify(rows.rows)].join("\n");
  expect(lines.length).toBeGreaterThanOrEqual(4);
  expect(everything).toContain("shop");
  for (const secret of [t.secret, stranger]) expect(everything).not.toContain(secret.slice(4, 20));
});
