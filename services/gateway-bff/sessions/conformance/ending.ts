/** How sessions are listed and ended: by their user, and by the provider where the user logged in. */
import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import { EndedAtProviderError } from "../errors.ts";
import type { ProviderLogout } from "../index.ts";
import { newSession, settings, userSnapshot } from "../testing.ts";

const rememberMs = 900_000;

/** Each with a token of its own, unless the test names one. */
const logoutOf = (about: Partial<ProviderLogout>): ProviderLogout => ({
  issuer: "https://id.example",
  tokenId: randomUUID(),
  rememberMs,
  ...about,
});

export function endingConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: a user's own sessions are listed, newest first`, async () => {
    await using t = await stage();
    const store = t.open();
    for (const userId of ["u_1", "u_2", "u_"]) await store.saveUser(userSnapshot({ userId }));
    await store.create(newSession({ userId: "u_2" }));
    const first = await store.create(newSession({ userAgent: `Mozilla \u{1f3ae} ${"x".repeat(300)}` }));
    await t.pass(5_000);
    const second = await store.create(newSession({ client: "native" }));
    const listed = await store.list("u_1");
    expect(listed.map(({ sessionId }) => sessionId)).toEqual([second.sessionId, first.sessionId]);
    expect(listed[0]).not.toHaveProperty("userAgent");
    expect(listed[1]?.userAgent).toMatch(/^Mozilla \u{1f3ae} x+$/u);
    expect(listed[1]?.userAgent?.length).toBe(200);
    for (const { createdAt, lastSeenAt, endsAt } of listed) {
      expect(Date.parse(endsAt) - Date.parse(createdAt)).toBe(settings.absoluteMs);
      expect(lastSeenAt).toBe(createdAt);
    }
    expect(JSON.stringify(listed)).not.toContain(first.token);
    expect(await store.list("u_")).toEqual([]);
    expect(await store.list("nobody")).toEqual([]);
  });

  test(`${name}: a user can end only their own sessions, one or all but one`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    for (const userId of ["u_1", "u_2"]) await here.saveUser(userSnapshot({ userId }));
    const others = await here.create(newSession({ userId: "u_2" }));
    const [a, b, c, d] = await Promise.all([1, 2, 3, 4].map(() => here.create(newSession())));
    if (!a || !b || !c || !d) throw new Error("four were made");

    expect(await here.end("u_2", a.sessionId)).toBe(false);
    expect(await here.end("u_1", "not-a-session")).toBe(false);
    expect(await here.end("u_1", a.sessionId)).toBe(true);
    expect(await here.end("u_1", a.sessionId)).toBe(false);
    expect(await there.find(a.token)).toBeUndefined();

    expect(await here.endAll("u_1", { except: b.sessionId })).toBe(2);
    expect(await Promise.all([b, c, d].map(({ token }) => there.find(token)))).toEqual([
      expect.objectContaining({ sessionId: b.sessionId }),
      undefined,
      undefined,
    ]);
    expect(await here.endAll("u_1")).toBe(1);
    expect(await here.endAll("u_1")).toBe(0);
    expect(await there.find(b.token)).toBeUndefined();
    expect(await there.find(others.token)).toBeDefined();
  });

  test(`${name}: ending an expired session returns false`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot());
    const [{ sessionId }] = [await store.create(newSession()), await store.create(newSession())];
    await t.pass(settings.idleMs);
    expect(await store.end("u_1", sessionId)).toBe(false);
    expect(await store.endAll("u_1")).toBe(0);
  });

  test(`${name}: a provider's logout ends one session or all of a subject, of its own only`, async () => {
    await using t = await stage();
    const store = t.open({ perUserMax: 20 });
    await store.saveUser(userSnapshot());
    const issuer = "https://id.example";
    const endByProvider = (ended: Partial<ProviderLogout>) => store.endByProvider(logoutOf(ended));
    const make = (about: Parameters<typeof newSession>[0]) => store.create(newSession(about));
    const one = await make({ providerSession: "sid-1" });
    const two = await make({ providerSession: "sid-2" });
    const bob = await make({ subject: "bob", providerSession: "sid-3" });
    const elsewhere = await make({ issuer: "https://other.example", providerSession: "sid-1" });
    const without = await make({});
    const isFound = async (...made: { token: string }[]) =>
      (await Promise.all(made.map(({ token }) => store.find(token)))).map((found) => found !== undefined);

    expect(await endByProvider({ issuer })).toBe(0);
    expect(await endByProvider({ issuer, providerSession: "sid-1", subject: "bob" })).toBe(0);
    expect(await endByProvider({ issuer, providerSession: "sid" })).toBe(0);
    expect(await endByProvider({ issuer, providerSession: "sid-1" })).toBe(1);
    expect(await isFound(one, two, bob, elsewhere, without)).toEqual([false, true, true, true, true]);
    expect(await endByProvider({ issuer, providerSession: "sid-3", subject: "bob" })).toBe(1);
    expect(await endByProvider({ issuer, subject: "alice" })).toBe(2);
    expect(await isFound(one, two, bob, elsewhere, without)).toEqual([false, false, false, true, false]);
    expect(await endByProvider({ issuer, subject: "alice" })).toBe(0);
  });

  test(`${name}: a logout token counts once at all processes until it expires`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    await here.saveUser(userSnapshot());
    const ofAlice = logoutOf({ subject: "alice", tokenId: "jti-1" });
    const old = await here.create(newSession());
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 ? here : there).endByProvider(ofAlice)),
    );
    expect(answers.filter((ended) => ended !== undefined)).toEqual([1]);
    expect(await here.find(old.token)).toBeUndefined();

    const { token } = await here.create(newSession());
    expect(await there.endByProvider(ofAlice)).toBeUndefined();
    expect(await here.find(token)).toBeDefined();
    await t.pass(rememberMs);
    expect(await there.endByProvider(ofAlice)).toBe(1);
  });

  test(`${name}: a login that the provider has ended opens no session`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    await here.saveUser(userSnapshot());
    const begunAtMs = await here.clock();
    await there.endByProvider(logoutOf({ providerSession: "sid-1" }));
    const ended = newSession({ providerSession: "sid-1", begunAtMs });
    await expect(here.create(ended)).rejects.toThrow(EndedAtProviderError);
    // The provider never reuses a session ID, so a later login with it stays ended.
    await expect(there.create({ ...ended, begunAtMs: await here.clock() })).rejects.toThrow(EndedAtProviderError);
    await here.create({ ...ended, providerSession: "sid-2" });
    await here.create({ ...ended, issuer: "https://other.example" });
    expect((await here.list("u_1")).length).toBe(2);
    await t.pass(rememberMs);
    await here.create(ended);
  });

  test(`${name}: a logout of a subject ends logins that began before it, and none after`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    await here.saveUser(userSnapshot());
    const begunAtMs = await there.clock();
    await there.endByProvider(logoutOf({ subject: "alice" }));
    for (const about of [{}, { providerSession: "sid-1" }])
      await expect(here.create(newSession({ begunAtMs, ...about }))).rejects.toThrow(EndedAtProviderError);
    await here.create(newSession({ begunAtMs, subject: "bob" }));
    // Redis counts milliseconds.
    await here.create(newSession({ begunAtMs: (await here.clock()) + 1 }));
    expect((await here.list("u_1")).length).toBe(2);
    // The next logout counts as the first did.
    const again = newSession({ begunAtMs: (await here.clock()) + 1 });
    await until("a millisecond has passed", async () => (await here.clock()) > (again.begunAtMs ?? 0));
    expect(await there.endByProvider(logoutOf({ subject: "alice" }))).toBe(1);
    await expect(here.create(again)).rejects.toThrow(EndedAtProviderError);
  });

  test(`${name}: a login and its concurrent logout leave no live session`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    await here.saveUser(userSnapshot());
    const begunAtMs = await here.clock();
    const lived: unknown[] = [];
    for (let round = 0; round < 40; round++) {
      const logout = round % 2 ? { subject: `s-${round}` } : { providerSession: `sid-${round}` };
      const [made] = await Promise.allSettled([
        here.create(newSession({ begunAtMs, subject: `s-${round}`, providerSession: `sid-${round}` })),
        there.endByProvider(logoutOf(logout)),
      ]);
      if (made.status === "fulfilled") lived.push(await here.find(made.value.token));
      else expect(made.reason).toBeInstanceOf(EndedAtProviderError);
    }
    expect(lived.filter((session) => session !== undefined)).toEqual([]);
  });

  test(`${name}: after a session has ended, no concurrent look-up finds it`, async () => {
    await using t = await stage();
    const [here, ...elsewhere] = [t.open(), t.open(), t.open()];
    if (!here) throw new Error("one was opened");
    await here.saveUser(userSnapshot());
    for (let round = 0; round < 10; round++) {
      const { token, sessionId } = await here.create(newSession());
      let ended = false;
      const wrong: unknown[] = [];
      const looking = [here, ...elsewhere].map(async (store) => {
        for (let after = 0; after < 5; await turn()) {
          const askedAfter = ended;
          const found = await store.find(token);
          if (askedAfter) after++;
          if (askedAfter && found) wrong.push(found);
        }
      });
      expect(await here.end("u_1", sessionId)).toBe(true);
      ended = true;
      await Promise.all(looking);
      expect(wrong).toEqual([]);
    }
  });
}
