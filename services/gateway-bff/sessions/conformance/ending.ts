/** How sessions are listed and ended: by their user, and by the provider where the user logged in. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import { known, logIn, settings } from "../testing.ts";

export function endingConforms({ name, stage }: StoreUnderTest): void {
  test(`${name}: a user's sessions are listed newest first, as the user will recognise them, and nobody else's are`, async () => {
    await using t = await stage();
    const store = t.open();
    for (const userId of ["u_1", "u_2", "u_"]) await store.know(known({ userId }));
    await store.create(logIn({ userId: "u_2" }));
    const first = await store.create(logIn({ userAgent: `Mozilla \u{1f3ae} ${"x".repeat(300)}` }));
    await t.pass(5_000);
    const second = await store.create(logIn({ client: "native" }));
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

  test(`${name}: a user ends their own sessions only, one by one or all but one`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    for (const userId of ["u_1", "u_2"]) await here.know(known({ userId }));
    const others = await here.create(logIn({ userId: "u_2" }));
    const [a, b, c, d] = await Promise.all([1, 2, 3, 4].map(() => here.create(logIn())));
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

  test(`${name}: a session whose time is over is none that could be ended`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.know(known());
    const [{ sessionId }] = [await store.create(logIn()), await store.create(logIn())];
    await t.pass(settings.idleMs);
    expect(await store.end("u_1", sessionId)).toBe(false);
    expect(await store.endAll("u_1")).toBe(0);
  });

  test(`${name}: the provider ends one session of its own, or all of a subject, and never another provider's`, async () => {
    await using t = await stage();
    const store = t.open({ perUserMax: 20 });
    await store.know(known());
    const issuer = "https://id.example";
    const make = (about: Parameters<typeof logIn>[0]) => store.create(logIn(about));
    const one = await make({ providerSession: "sid-1" });
    const two = await make({ providerSession: "sid-2" });
    const bob = await make({ subject: "bob", providerSession: "sid-3" });
    const elsewhere = await make({ issuer: "https://other.example", providerSession: "sid-1" });
    const without = await make({});
    const isFound = async (...made: { token: string }[]) =>
      (await Promise.all(made.map(({ token }) => store.find(token)))).map((found) => found !== undefined);

    expect(await store.endByProvider({ issuer })).toBe(0);
    expect(await store.endByProvider({ issuer, providerSession: "sid-1", subject: "bob" })).toBe(0);
    expect(await store.endByProvider({ issuer, providerSession: "sid" })).toBe(0);
    expect(await store.endByProvider({ issuer, providerSession: "sid-1" })).toBe(1);
    expect(await isFound(one, two, bob, elsewhere, without)).toEqual([false, true, true, true, true]);
    expect(await store.endByProvider({ issuer, providerSession: "sid-3", subject: "bob" })).toBe(1);
    expect(await store.endByProvider({ issuer, subject: "alice" })).toBe(2);
    expect(await isFound(one, two, bob, elsewhere, without)).toEqual([false, false, false, true, false]);
    expect(await store.endByProvider({ issuer, subject: "alice" })).toBe(0);
  });

  test(`${name}: once an end was answered no process finds the session, however many are looking it up`, async () => {
    await using t = await stage();
    const [here, ...elsewhere] = [t.open(), t.open(), t.open()];
    if (!here) throw new Error("one was opened");
    await here.know(known());
    for (let round = 0; round < 10; round++) {
      const { token, sessionId } = await here.create(logIn());
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
