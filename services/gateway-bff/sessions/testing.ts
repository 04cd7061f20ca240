/** What the tests of sessions share: stores on real engines, time that can be made to pass, and users to log in. */
import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { testDatabase } from "@todoke/kernel/testing";
import { operatorClient } from "@todoke/redis/testing";
import type { SessionSettings } from "../config.ts";
import type { NewSession, SessionStore, UserSnapshot } from "./index.ts";
import { postgresSessions } from "./postgres.ts";
import { redisSessions } from "./redis.ts";
import { redisKeys } from "./redis-scripts.ts";

/** Sessions that only one test has. */
export interface Harness extends AsyncDisposable {
  /** Another process of the gateway, as far as the store can tell. */
  open(settings?: Partial<SessionSettings>): SessionStore;
  /** Lets time pass: all that is kept is so much older. */
  pass(ms: number): Promise<void>;
  /** All that is kept, as text. */
  dump(): Promise<string>;
}

export const secret = randomBytes(32);

export const settings: SessionSettings = {
  idleMs: 1_000_000,
  absoluteMs: 10_000_000,
  perUserMax: 5,
  secrets: [secret],
};

export const userSnapshot = (about: Partial<UserSnapshot> = {}): UserSnapshot => ({
  userId: "u_1",
  status: "ACTIVE",
  roles: ["USER"],
  version: 1,
  ...about,
});

export const newSession = (about: Partial<NewSession> = {}): NewSession => ({
  userId: "u_1",
  client: "browser",
  issuer: "https://id.example",
  subject: "alice",
  tokens: { idToken: "id-token-1", accessToken: "access-token-1" },
  ...about,
});

const own = { name: "gateway-bff", dir: new URL("../migrations/", import.meta.url) };

export async function postgresHarness() {
  const t = await testDatabase({ schema: "gateway_bff", sets: [kernelMigrations, own] });
  const opened: SessionStore[] = [];
  const rowsOf = async (table: string) => (await t.db.query(`select t::text as row from ${table} t`)).rows;
  const stage = {
    open(more: Partial<SessionSettings> = {}) {
      const store = postgresSessions(t.open(), { ...settings, ...more });
      opened.push(store);
      return store;
    },
    async pass(ms: number) {
      const ago = (column: string) => `${column} = ${column} - ${ms} * interval '1 millisecond'`;
      const times = ["created_at", "last_seen_at", "ends_at", "refresh_due_at", "authenticated_at"];
      await t.db.query(`update sessions set ${times.map(ago).join()}`);
      await t.db.query(`update known_users set ${ago("suspended_until")}`);
      await t.db.query(`update one_time set ${ago("expires_at")}`);
      await t.db.query(`update provider_logouts set ${ago("ended_at")}, ${ago("expires_at")}`);
    },
    async dump() {
      const tables = await Promise.all(["sessions", "known_users", "one_time", "provider_logouts"].map(rowsOf));
      return inspect(tables, { depth: null, maxArrayLength: null, maxStringLength: null });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((store) => store[Symbol.asyncDispose]()));
      await t[Symbol.asyncDispose]();
    },
  };
  return { ...stage, db: t.db, url: t.url, openDb: t.open };
}

export async function redisHarness({ url }: { readonly url: string }) {
  const namespace = `t${randomBytes(6).toString("hex")}`;
  const client = await operatorClient(url);
  const [, sessions = "", , , ends = "", knownUsers = ""] = redisKeys(namespace);
  const opened: SessionStore[] = [];
  const errors: unknown[] = [];

  async function rewrite(key: string, change: (record: Record<string, unknown>) => Record<string, unknown>) {
    for (const [field, text] of Object.entries(await client.hGetAll(key)))
      await client.hSet(key, field, JSON.stringify(change(JSON.parse(text))));
  }

  return {
    namespace,
    client,
    /** Errors that the stores reported to onError. */
    errors,
    open(more: Partial<SessionSettings> = {}, at = url): SessionStore {
      const onError = (error: unknown) => void errors.push(error);
      // A server, or a machine, that stands still for a moment is not what these tests are about.
      const link = { url: at, onError, requestTimeoutMs: 60_000 };
      const store = redisSessions({ ...link, namespace, settings: { ...settings, ...more } });
      opened.push(store);
      return store;
    },
    async pass(ms: number): Promise<void> {
      await rewrite(sessions, (record) => {
        const times = ["created", "seen", "ends", "due", "authenticated"].filter((name) => name in record);
        return { ...record, ...Object.fromEntries(times.map((name) => [name, Number(record[name]) - ms])) };
      });
      await rewrite(knownUsers, (user) => {
        return user.until ? { ...user, until: new Date(Date.parse(String(user.until)) - ms).toISOString() } : user;
      });
      for (const { value, score } of await client.zRangeWithScores(ends, 0, -1))
        await client.zAdd(ends, { value, score: score - ms });
      for (const key of await client.keys(`{${namespace}}:*`)) {
        const left = await client.pTTL(key);
        if (left > 0) await client.pExpire(key, left - ms); // What is not in the future is gone at once.
      }
    },
    async dump(): Promise<string> {
      const read = async (key: string) => {
        const type = await client.type(key);
        if (type === "hash") return client.hGetAll(key);
        return type === "zset" ? client.zRange(key, 0, -1) : client.get(key);
      };
      const keys = await client.keys(`{${namespace}}:*`);
      const all = await Promise.all(keys.map(async (key) => [key, await read(key)]));
      return inspect(all, { depth: null, maxArrayLength: null, maxStringLength: null });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((store) => store[Symbol.asyncDispose]()));
      const keys = await client.keys(`{${namespace}}:*`);
      if (keys.length > 0) await client.del(keys);
      client.destroy();
    },
  };
}
