import { inspect } from "node:util";
import { type Db, getSqlState, isUnavailable, transaction } from "@todoke/kernel/db";
import { genericPlan, openFaultProxy, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { lockLogouts, upsertProviderLogout } from "../store/provider-logouts.ts";
import * as sql from "../store/sessions.ts";
import { findSql, markSeen, markSeenSql } from "../store/sessions.ts";
import { lockUser } from "../store/users.ts";
import { openEncryption } from "./encryption.ts";
import { EndedAtProviderError } from "./errors.ts";
import { postgresSessions } from "./postgres.ts";
import { toLogoutNames, toSessionRow } from "./session-row.ts";
import { newSession, postgresHarness, settings, userSnapshot } from "./testing.ts";

const { idleMs } = settings;

const many = `
with u as (insert into known_users (user_id, status, roles, account_version)
           select 'u' || i, 'ACTIVE', '{USER}', 1 from generate_series(1, 20000) i returning user_id)
insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens,
                      created_at, last_seen_at, ends_at)
select gen_random_uuid(), sha256(user_id::bytea), user_id, 'browser', 'i', 's', '', now(), now(), now() + interval '1 day'
  from u`;

test("find and mark-seen use index probes, also on stale statistics", async () => {
  await using t = await postgresHarness();
  for (const state of ["", "analyze sessions, known_users", many, "analyze sessions, known_users"]) {
    await t.db.query(state);
    const [find, seen] = [await genericPlan(t.db, findSql), await genericPlan(t.db, markSeenSql)];
    for (const plan of [find, seen]) expect(plan, `after ${state}`).not.toMatch(/Seq Scan on|Bitmap|Hash|Merge/);
    expect(find).toMatch(/Index Scan using session_token_once .*\n\s+Index Cond: \(token_sha256 = i\.token_sha256\)/);
    expect(find).toMatch(/Index Scan using known_users_pkey .*\n\s+Index Cond: \(user_id = sessions\.user_id\)/);
    expect(seen.match(/Index Scan using sessions_pkey .*\n\s+Index Cond: \(session_id = ANY/g)?.length).toBe(2);
  }
});

test("last_seen_at is written once per twentieth of the idle time", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { token } = await store.create(newSession());
  const seen = async () => String((await t.db.query(`select last_seen_at::text as at from sessions`)).rows[0]?.at);
  const useMuch = async () => {
    for (let times = 0; times < 5; times++) await Promise.all(Array.from({ length: 20 }, () => store.find(token)));
    await store[Symbol.asyncDispose](); // It waits for what `find` does not wait for.
    return seen();
  };
  await t.pass(idleMs * 0.02);
  const before = await seen();
  expect(await useMuch()).toBe(before);
  await t.pass(idleMs * 0.04);
  await store.find(token);
  await until("it is written as seen", async () => (await seen()) > before);
  const written = await seen();
  expect(await useMuch()).toBe(written);
});

test("a late write of last_seen_at does not restore an ended session", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { token, sessionId } = await store.create(newSession());
  await t.pass(idleMs);
  await markSeen(t.db, [{ sessionId, seenAt: new Date().toISOString() }], idleMs);
  expect(await store.find(token)).toBeUndefined();
});

test("the database refuses an unhashed token and a session without a user", async () => {
  await using t = await postgresHarness();
  const insert = (sha256: string, userId: string) =>
    t.db.query(
      `insert into sessions (session_id, token_sha256, user_id, client, issuer, subject, provider_tokens,
                             created_at, last_seen_at, ends_at)
       values (gen_random_uuid(), $1::bytea, $2, 'browser', 'i', 's', '', now(), now(), now() + interval '1 day')`,
      [sha256, userId],
    );
  await t.open().saveUser(userSnapshot());
  const stateOf = (refused: Promise<unknown>) => refused.then(() => "taken", getSqlState);
  expect(await stateOf(insert("tds_raw", "u_1"))).toBe("23514");
  expect(await stateOf(insert(`\\x${"00".repeat(32)}`, "nobody"))).toBe("23503");
  expect(await stateOf(insert(`\\x${"00".repeat(32)}`, "u_1"))).toBe("taken");
});

test("a session of a deleted user is not found", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { token } = await store.create(newSession());
  await t.db.query(`update known_users set status = 'DELETED'`);
  expect(await store.find(token)).toBeUndefined();
});

test("a pending login cannot be turned into a native code by changing its row", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.putOneTime("login", "known-to-both", "a login", 60_000);
  await t.db.query(`update one_time set kind = 'native-code'`);
  expect(await store.takeOneTime("native-code", "known-to-both")).toBeUndefined();
});

test("while the database is unavailable, find fails and its error has no token", async () => {
  await using t = await postgresHarness();
  await using wire = await openFaultProxy(t.url);
  const store = postgresSessions(t.openDb({ url: wire.url }), settings);
  await store.saveUser(userSnapshot());
  const { token } = await store.create(newSession());
  expect(await store.find(token)).toBeDefined();
  wire.cut();
  const error = await store.find(token).catch((failure: unknown) => failure);
  expect(isUnavailable(error)).toBe(true);
  expect(inspect(error, { depth: null, showHidden: true })).not.toContain(token);
  expect(await t.open().find(token)).toBeDefined();
});

/** Whether a backend waits for a lock that another backend of this database holds. */
const isLockWaited = (db: Db) => async (): Promise<boolean> => {
  const { rows } = await db.query(
    `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
  );
  return rows.length > 0;
};

test("a suspension ends a session that was created while it waited for its lock", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const draft = toSessionRow(newSession(), openEncryption(settings.secrets));
  const suspended = await transaction(t.db, async (tx) => {
    await lockUser(tx, draft.userId);
    await sql.insertSession(tx, draft, settings);
    const knowing = store.saveUser(userSnapshot({ status: "SUSPENDED", version: 2 }));
    await until("the suspension waits", isLockWaited(t.openDb()));
    return { knowing };
  });
  await suspended.knowing;
  expect((await t.db.query(`select from sessions`)).rowCount).toBe(0);
});

test("a logout at the provider waits for a concurrent login and ends its session", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  for (const logout of [{ providerSession: "sid-1" }, { subject: "alice" }]) {
    const draft = toSessionRow(newSession({ providerSession: "sid-1" }), openEncryption(settings.secrets));
    const { ending } = await transaction(t.db, async (tx) => {
      await lockLogouts(tx, [draft.logouts.ofSession, draft.logouts.ofSubject].filter(Boolean) as Buffer[], "shared");
      await sql.insertSession(tx, draft, settings);
      const ending = store.endByProvider({
        issuer: draft.issuer,
        tokenId: draft.sessionId,
        rememberMs: 60_000,
        ...logout,
      });
      await until("the logout waits", isLockWaited(t.openDb()));
      return { ending };
    });
    expect(await ending).toBe(1);
    await t.db.query("delete from provider_logouts");
  }
});

test("a login waits for a concurrent logout at the provider and opens no session", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const begunAtMs = await store.clock();
  const { ofSession, ofSubject } = toLogoutNames(newSession({ providerSession: "sid-1" }));
  for (const name of [ofSession, ofSubject] as Buffer[]) {
    const { creating } = await transaction(t.db, async (tx) => {
      await lockLogouts(tx, [name], "exclusive");
      await upsertProviderLogout(tx, name, 60_000);
      const creating = store
        .create(newSession({ providerSession: "sid-1", begunAtMs }))
        .catch((error: unknown) => error);
      await until("the login waits", isLockWaited(t.openDb()));
      return { creating };
    });
    expect(await creating).toBeInstanceOf(EndedAtProviderError);
    await t.db.query("delete from provider_logouts");
  }
});

test("a late write of last_seen_at does not move it back", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  const { sessionId } = await store.create(newSession());
  const seen = async () => (await t.db.query(`select last_seen_at::text as at from sessions`)).rows[0]?.at;
  const before = await seen();
  await markSeen(t.db, [{ sessionId, seenAt: new Date(Date.now() - idleMs / 2).toISOString() }], idleMs);
  expect(await seen()).toBe(before);
});

test("of sessions created at the same time, the last one in the list makes room for a new one", async () => {
  await using t = await postgresHarness();
  const store = t.open();
  await store.saveUser(userSnapshot());
  for (let made = 0; made < settings.perUserMax; made++) await store.create(newSession());
  await t.db.query(`update sessions set created_at = now()`);
  const listed = await store.list("u_1");
  await store.create(newSession());
  expect((await store.list("u_1")).slice(1)).toEqual(listed.slice(0, -1));
});
