/** How long a session lives, by the store's clock, and how many of one user do. */
import assert from "node:assert/strict";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import type { SessionStore } from "../index.ts";
import { newSession, settings, userSnapshot } from "../testing.ts";

const { idleMs, absoluteMs, perUserMax } = settings;

export function livingConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: a token finds its own session at every process, and no other text does`, async () => {
    await using t = await stage();
    const [one, another] = [t.open(), t.open()];
    await one.saveUser(userSnapshot({ roles: ["USER", "ADMIN"] }));
    const { token, sessionId } = await one.create(newSession({ client: "native" }));
    expect(token).toMatch(/^tds_[\w-]{43}$/);
    expect(await another.find(token)).toEqual({
      sessionId,
      userId: "u_1",
      client: "native",
      status: "ACTIVE",
      roles: ["USER", "ADMIN"],
      refreshDue: false,
    });
    const last = token.endsWith("A") ? "B" : "A";
    const others = ["", "tds_", token.slice(0, -1), `${token}A`, ` ${token}`, sessionId, token.slice(0, -1) + last];
    expect(await Promise.all(others.map((text) => one.find(text)))).toEqual(others.map(() => undefined));
  });

  test(`${name}: concurrent look-ups of many tokens each find their own session`, async () => {
    await using t = await stage();
    const store = t.open({ perUserMax: 300 });
    await store.saveUser(userSnapshot());
    const made = await Promise.all(Array.from({ length: 150 }, () => store.create(newSession())));
    expect(new Set(made.map(({ token }) => token)).size).toBe(150);
    const found = await Promise.all(made.map(({ token }) => store.find(token)));
    expect(found.map((session) => session?.sessionId)).toEqual(made.map(({ sessionId }) => sessionId));
  });

  test(`${name}: an unused session ends after its idle time`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const { token } = await store.create(newSession());
    await t.pass(idleMs);
    for (let times = 0; times < 3; times++) expect(await store.find(token)).toBeUndefined();
    expect(await store.list("u_1")).toEqual([]);
  });

  test(`${name}: the idle time counts from the last use, or up to a twentieth of it earlier`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const { token } = await store.create(newSession());
    for (let times = 0; times < 3; times++) {
      await t.pass(idleMs * 0.9);
      await use(store, token);
    }
    await t.pass(idleMs * 0.04);
    expect(await store.find(token)).toBeDefined(); // So soon again that it is not written.
    await t.pass(idleMs * 0.92);
    await use(store, token);
    await t.pass(idleMs);
    expect(await store.find(token)).toBeUndefined();
  });

  test(`${name}: a session that is used ends at its maximum age`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const { token } = await store.create(newSession());
    const step = absoluteMs / 12;
    for (let times = 1; times < 12; times++) {
      await t.pass(step);
      await use(store, token);
    }
    await t.pass(step);
    expect(await store.find(token)).toBeUndefined();
  });

  test(`${name}: a login past the limit of sessions ends the user's oldest session`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    await store.saveUser(userSnapshot({ userId: "u_2" }));
    const first = await store.create(newSession());
    await t.pass(idleMs * 0.5);
    await use(store, first.token);
    const left = await store.create(newSession());
    await t.pass(idleMs * 0.6);
    await use(store, first.token);
    await t.pass(idleMs * 0.5);
    expect(await store.find(left.token)).toBeUndefined(); // Newer than the first one, and over.
    const other = await store.create(newSession({ userId: "u_2" }));
    const next = [];
    for (let made = 1; made < perUserMax; made++) next.push(await store.create(newSession()));
    expect(await store.find(first.token)).toBeDefined();
    await store.create(newSession());
    expect(await store.find(first.token)).toBeUndefined();
    for (const { token } of [other, ...next]) expect(await store.find(token)).toBeDefined();
    expect((await store.list("u_1")).length).toBe(perUserMax);
  });

  test(`${name}: concurrent logins of one user stay within the limit of sessions`, async () => {
    await using t = await stage();
    const processes = [t.open(), t.open(), t.open(), t.open()];
    await processes[0]?.saveUser(userSnapshot());
    const made = await Promise.all(
      processes.flatMap((store) => Array.from({ length: 6 }, () => store.create(newSession()))),
    );
    const [store] = processes as [SessionStore];
    const found = await Promise.all(made.map(({ token }) => store.find(token)));
    expect(found.filter((session) => session !== undefined).length).toBe(perUserMax);
    expect((await store.list("u_1")).length).toBe(perUserMax);
  });

  test(`${name}: expired rows are deleted, live ones are not`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    await store.saveUser(userSnapshot({ userId: "u_2" }));
    await store.create(newSession());
    await store.putOneTime("login", "state-1", {}, 1_000);
    await t.pass(absoluteMs);
    const { token } = await store.create(newSession({ userId: "u_2", subject: "bob" }));
    await store.putOneTime("login", "state-2", "still here", 60_000);
    expect(await t.dump()).toContain("alice");
    expect(await store.deleteExpired()).toBeGreaterThan(0);
    expect(await store.deleteExpired()).toBe(0);
    expect(await t.dump()).not.toContain("alice");
    expect(await store.find(token)).toBeDefined();
    expect(await store.takeOneTime("login", "state-2")).toBe("still here");
  });

  test(`${name}: a session has the age of the user's authentication, if the provider sent it`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const authenticatedAtMs = (await store.clock()) - 5_000;
    const { token } = await store.create(newSession({ authenticatedAtMs }));
    await t.pass(60_000);
    const { authenticatedAgoMs = 0 } = (await store.find(token)) ?? {};
    expect(authenticatedAgoMs).toBeGreaterThanOrEqual(65_000);
    expect(authenticatedAgoMs).toBeLessThanOrEqual((await store.clock()) - authenticatedAtMs + 60_000);
    const silent = await store.create(newSession());
    expect(await store.find(silent.token)).not.toHaveProperty("authenticatedAgoMs");
  });
}

/** Finds it, and waits until that is written down, for which `find` does not wait. */
async function use(store: SessionStore, token: string): Promise<void> {
  const session = await store.find(token);
  assert(session, "it should be found");
  const seenAt = async () => {
    const listed = (await store.list(session.userId)).find(({ sessionId }) => sessionId === session.sessionId);
    return Date.parse(listed?.lastSeenAt ?? "");
  };
  await until("it is written as seen", async () => Date.now() - (await seenAt()) < settings.idleMs / 25);
}
