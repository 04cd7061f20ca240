/** Cancelling all tickets of users, as part of the caller's transaction. */
import { transaction } from "@todoke/kernel/db";
import { expect, test } from "vitest";
import type { QueueUnderTest } from "../conformance.ts";
import { cancelUsers, duels, expectConsistent, joinInOrder, mode, readStored, ticketRequest } from "../testing.ts";

export function cancelForUsersConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: tickets of the users are cancelled in every mode when the transaction commits`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [suspended, friend, other] = ["u_suspended", "u_friend", "u_other"];
    const ofSuspended = [
      ...(await joinInOrder(queue, 1, { userId: suspended })),
      ...(await joinInOrder(queue, 1, { userId: suspended, mode: "ranked" })),
    ];
    const [ofFriend = ""] = await joinInOrder(queue, 1, { userId: friend });
    const [ofOther = ""] = await joinInOrder(queue, 1, { userId: other, mode: "ranked" });
    await cancelUsers({ queue, db: t.db }, [suspended, friend, "u_unknown"]);
    const { ended, events } = await readStored(t.db);
    expect(ended("CANCELLED").sort()).toEqual([...ofSuspended, ofFriend].sort());
    expect(events).toEqual([]);
    expect(await queue.cancel(ofFriend)).toBe("CANCELLED");
    expect(await queue.find(ofOther)).toMatchObject({ status: "QUEUED" });
    await t.allRecorded();
    expect((await queue.sweep(mode)).waiting).toBe(0);
    expect((await queue.sweep("ranked")).waiting).toBe(1);
    expect(await queue.join(ticketRequest({ userId: suspended }))).toMatchObject({ kind: "new" });
    await expectConsistent(t.db);
  });

  test(`${name}: earlier matches stand, and expired tickets end as EXPIRED`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    await joinInOrder(queue, 1, { userId: "u_1" });
    await joinInOrder(queue, 1, { userId: "u_2" });
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
    const [late = ""] = await joinInOrder(queue, 1, { userId: "u_late", ticketMs: 1 });
    await expect.poll(() => queue.find(late)).toMatchObject({ status: "EXPIRED" });
    await cancelUsers({ queue, db: t.db }, ["u_1", "u_2", "u_late"]);
    await t.allRecorded();
    const { ended } = await readStored(t.db);
    expect([ended("MATCHED").length, ended("EXPIRED"), ended("CANCELLED")]).toEqual([2, [late], []]);
    await expectConsistent(t.db);
  });

  test(`${name}: after a rollback, repeating the transaction leaves no ticket without an end`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [id = ""] = await joinInOrder(queue, 1, { userId: "u_1" });
    const crashed = transaction(t.db, async (tx) => {
      await queue.cancelForUsers(tx, { userIds: ["u_1"], modes: [mode, "ranked"] });
      throw new Error("crash");
    });
    // It fails with this error, or because a recorder was first.
    await expect(crashed).rejects.toThrow();
    await cancelUsers({ queue, db: t.db }, ["u_1"]);
    await t.allRecorded();
    expect((await readStored(t.db)).ended("CANCELLED")).toEqual([id]);
    expect((await queue.sweep(mode)).waiting).toBe(0);
  });

  test(`${name}: of a match and a cancel of its users at the same time, exactly one takes effect`, async () => {
    await using t = await createHarness();
    const [players, matchmakers] = [t.open(), [t.open(), t.open()]];
    for (let round = 0; round < 20; round++) {
      const users = Array.from({ length: 6 }, (_, n) => `u_${round}_${n}`);
      await Promise.all(users.map((userId) => players.join(ticketRequest({ userId }))));
      await Promise.all([
        ...matchmakers.map((queue) => queue.matchInOrder(mode, duels)),
        cancelUsers({ queue: players, db: t.db }, users.slice(0, 3)),
        cancelUsers({ queue: players, db: t.db }, users.slice(2, 4)),
        ...matchmakers.map((queue) => queue.matchInOrder(mode, duels)),
      ]);
    }
    await t.allRecorded();
    const { ended } = await readStored(t.db);
    const waiting = (await players.sweep(mode)).waiting;
    expect(ended("CANCELLED").length + ended("MATCHED").length + waiting).toBe(120);
    await expectConsistent(t.db);
  });
}
