/** What is known of users, and what sessions are worth by it. */

import { setImmediate as turn } from "node:timers/promises";
import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StoreUnderTest } from "../conformance.ts";
import { UnknownUserError } from "../errors.ts";
import type { UserSnapshot, UserStatus } from "../index.ts";
import { newSession, userSnapshot } from "../testing.ts";

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

export function usersConform({ name, stage }: StoreUnderTest): void {
  test(`${name}: an unknown or deleted user gets no session`, async () => {
    await using t = await stage();
    const store = t.open();
    await expect(store.create(newSession())).rejects.toThrow(UnknownUserError);
    await store.saveUser(userSnapshot());
    const { token } = await store.create(newSession());
    await store.saveUser(userSnapshot({ status: "DELETED", roles: [], version: 2 }));
    expect(await store.find(token)).toBeUndefined();
    await expect(store.create(newSession())).rejects.toThrow(UnknownUserError);
    expect(await store.list("u_1")).toEqual([]);
  });

  test(`${name}: a session moves to another user with its token, once, and from its own user only`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    for (const userId of ["u_1", "u_2", "u_3"]) await here.saveUser(userSnapshot({ userId }));
    const { token, sessionId } = await here.create(newSession());
    expect(await there.getIdentity(sessionId)).toEqual({ issuer: "https://id.example", subject: "alice" });
    expect(await here.moveToUser({ sessionId, from: "u_3", to: "u_2" })).toBe(false);
    const move = { sessionId, from: "u_1", to: "u_2" };
    expect(await Promise.all([here.moveToUser(move), there.moveToUser(move)])).toEqual([true, true]);
    expect(await there.find(token)).toMatchObject({ sessionId, userId: "u_2" });
    expect(await there.list("u_1")).toEqual([]);
    expect((await there.list("u_2")).map((each) => each.sessionId)).toEqual([sessionId]);
    await here.saveUser(userSnapshot({ userId: "u_2", status: "SUSPENDED", version: 2 }));
    expect(await there.find(token)).toBeUndefined();
    expect(await there.getIdentity(sessionId)).toBeUndefined();
    expect(await here.moveToUser(move)).toBe(false);
  });

  test(`${name}: the roles of a user are those of the latest version, and none while the user may not act`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    const save = (version: number, more: Partial<UserSnapshot>) => here.saveUser(userSnapshot({ version, ...more }));
    expect(await there.getRoles("u_1")).toEqual([]);
    await save(1, { roles: ["USER", "VIEWER"] });
    expect(await there.getRoles("u_1")).toEqual(["USER", "VIEWER"]);
    await save(2, { roles: ["USER"] });
    expect(await there.getRoles("u_1")).toEqual(["USER"]);
    await save(3, { status: "SUSPENDED", suspendedUntil: inAnHour() });
    expect(await there.getRoles("u_1")).toEqual([]);
    await save(4, { status: "SUSPENDED", suspendedUntil: "2026-01-01T00:00:00Z" });
    expect(await there.getRoles("u_1")).toEqual(["USER"]);
    await save(5, { status: "DELETED", roles: [] });
    expect(await there.getRoles("u_1")).toEqual([]);
  });

  test(`${name}: a suspension ends all sessions, and a later login is suspended too`, async () => {
    await using t = await stage();
    const [here, there] = [t.open(), t.open()];
    await here.saveUser(userSnapshot());
    await here.saveUser(userSnapshot({ userId: "u_2" }));
    const before = await Promise.all([here.create(newSession()), there.create(newSession())]);
    const other = await here.create(newSession({ userId: "u_2" }));
    const suspendedUntil = inAnHour();
    await there.saveUser(userSnapshot({ status: "SUSPENDED", suspendedUntil, version: 2 }));
    for (const { token } of before) expect(await here.find(token)).toBeUndefined();
    expect(await here.find(other.token)).toMatchObject({ status: "ACTIVE" });

    const { token } = await here.create(newSession());
    const suspended = await there.find(token);
    expect(suspended?.status).toBe("SUSPENDED");
    expect(Date.parse(suspended?.suspendedUntil ?? "")).toBe(Date.parse(suspendedUntil));
  });

  test(`${name}: a suspension expires by the store's clock`, async () => {
    await using t = await stage();
    const store = t.open({ idleMs: 10_000_000 });
    await store.saveUser(userSnapshot({ status: "SUSPENDED", suspendedUntil: inAnHour() }));
    const { token } = await store.create(newSession());
    await t.pass(3_500_000);
    expect(await store.find(token)).toMatchObject({ status: "SUSPENDED" });
    await t.pass(100_000);
    const session = await store.find(token);
    expect(session?.status).toBe("ACTIVE");
    expect(session).not.toHaveProperty("suspendedUntil");
  });

  test(`${name}: a suspension without an end lasts until a higher version`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot({ status: "SUSPENDED", version: 7 }));
    const { token } = await store.create(newSession());
    await store.saveUser(userSnapshot({ version: 6 }));
    await store.saveUser(userSnapshot({ version: 7 }));
    expect(await store.find(token)).toMatchObject({ status: "SUSPENDED", roles: ["USER"] });
    await store.saveUser(userSnapshot({ version: 8, roles: ["USER", "ADMIN"] }));
    expect(await store.find(token)).toMatchObject({ status: "ACTIVE", roles: ["USER", "ADMIN"] });
  });

  test(`${name}: a late event with an old suspension ends no session`, async () => {
    await using t = await stage();
    const store = t.open();
    await store.saveUser(userSnapshot({ version: 9 }));
    const { token } = await store.create(newSession());
    await store.saveUser(userSnapshot({ status: "SUSPENDED", version: 8 }));
    await store.saveUser(userSnapshot({ status: "DELETED", version: 9 }));
    expect(await store.find(token)).toMatchObject({ status: "ACTIVE" });
  });

  test(`${name}: the highest version wins in any order and at any process`, async () => {
    await using t = await stage();
    const processes = [t.open(), t.open()] as const;
    const statuses: readonly UserStatus[] = ["ACTIVE", "SUSPENDED", "ACTIVE", "SUSPENDED", "ACTIVE"];
    const versions = statuses.map((status, index) => ({ status, version: 2 ** 53 - 6 + index }));
    let users = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(versions, { minLength: 1 }),
        fc.array(fc.nat(1), { minLength: 5, maxLength: 5 }),
        fc.boolean(),
        async (order, places, together) => {
          const userId = `u_${users++}`;
          const tell = (user: Pick<UserSnapshot, "status" | "version">, index: number) =>
            (places[index] === 1 ? processes[1] : processes[0]).saveUser(userSnapshot({ userId, ...user }));
          if (together) await Promise.all(order.map(tell));
          else for (const [index, user] of order.entries()) await tell(user, index);
          const { token } = await processes[0].create(newSession({ userId }));
          const highest = order.reduce((a, b) => (a.version > b.version ? a : b));
          expect(await processes[1].find(token)).toMatchObject({ status: highest.status });
        },
      ),
      { numRuns: repetitions(60) },
    );
  });

  test(`${name}: after a suspension no session of the user is active`, async () => {
    await using t = await stage();
    const processes = [t.open(), t.open(), t.open()];
    const [admin] = processes;
    if (!admin) throw new Error("one was opened");
    for (let round = 0; round < 15; round++) {
      const userId = `u_${round}`;
      await admin.saveUser(userSnapshot({ userId }));
      let suspended = false;
      const wrong: unknown[] = [];
      const playing = processes.map(async (store) => {
        for (let after = 0; after < 3; await turn()) {
          const { token } = await store.create(newSession({ userId }));
          for (let looked = 0; looked < 3; looked++) {
            const askedAfter = suspended;
            const found = await store.find(token);
            if (askedAfter) after++;
            if (askedAfter && found?.status === "ACTIVE") wrong.push(found);
          }
        }
      });
      await admin.saveUser(userSnapshot({ userId, status: "SUSPENDED", version: 2 }));
      suspended = true;
      await Promise.all(playing);
      expect(wrong).toEqual([]);
    }
  });
}
