/** Joining: one open ticket per user and mode, one ticket per key. */
import { idempotencyConflict } from "@todoke/kernel/idempotency";
import { expect, test } from "vitest";
import { ticketOpen } from "../../problems.ts";
import type { QueueUnderTest } from "../conformance.ts";
import { duels, joinInOrder, mode, ticketIds, ticketRequest } from "../testing.ts";
import { parseMode } from "../ticket-id.ts";

export function joiningConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: a join creates a ticket with the owner, attributes and times of the request`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const attributes = {
      skill: 1234.567890123456,
      exact: 9007199254740991,
      name: 'é\u{1f3ae}"\\/\u2028',
      none: [],
      regions: ["eu", "us"],
      latency: { eu: 20, "": 0.1 },
      flag: false,
      empty: {},
    };
    const request = ticketRequest({ userId: "u 1/é", partySize: 3, attributes, avoid: ["u_9"], heartbeatMs: 30_000 });
    const joined = await queue.join(request);
    expect(joined).toMatchObject({ kind: "new", replayed: false });
    expect(parseMode(joined.ticketId)).toBe(mode);
    expect(ticketIds.isOwn(joined.ticketId, "u 1/é")).toBe(true);
    const found = await t.open().find(joined.ticketId);
    expect(found?.status).toBe("QUEUED");
    const { joinedAt = 0, expiresAt = 0, aliveUntil = 0, ...fields } = found?.ticket ?? {};
    expect(fields).toEqual({
      ticketId: joined.ticketId,
      mode,
      userId: "u 1/é",
      partySize: 3,
      attributes,
      avoid: ["u_9"],
    });
    expect(expiresAt).toBe(joined.expiresAt);
    expect(Math.abs(expiresAt - joinedAt - 600_000)).toBeLessThanOrEqual(1);
    expect(Math.abs(aliveUntil - joinedAt - 30_000)).toBeLessThanOrEqual(1);
    expect(await queue.find(`${mode}.${"x".repeat(28)}`)).toBeUndefined();
  });

  test(`${name}: fifty concurrent joins of one user at two processes create one ticket`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open()] as const;
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, n) => processes[n % 2 === 0 ? 0 : 1].join(ticketRequest({ userId: "u_1" }))),
    );
    expect(new Set(all.map(({ ticketId }) => ticketId)).size).toBe(1);
    expect(all.filter(({ kind }) => kind === "new")).toHaveLength(1);
    expect(all.filter(({ replayed }) => replayed)).toHaveLength(0);
    expect((await processes[0].sweep(mode)).waiting).toBe(1);
  });

  test(`${name}: a repeated key returns the same result, concurrently and after the ticket has ended`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open()] as const;
    const one = ticketRequest({ userId: "u_1" });
    const all = await Promise.all(Array.from({ length: 50 }, (_, n) => processes[n % 2 === 0 ? 0 : 1].join(one)));
    const { replayed: _, ...first } = all.find(({ replayed }) => !replayed) ?? { replayed: true };
    expect(all.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const { replayed: __, ...each } of all) expect(each).toEqual(first);
    const [queue] = processes;
    await queue.cancel(all[0]?.ticketId ?? "");
    await t.allRecorded();
    expect(await queue.join(one)).toEqual({ ...first, replayed: true });
    expect((await queue.sweep(mode)).waiting).toBe(0);
  });

  test(`${name}: a key that returned the open ticket replays it after the ticket has ended`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const made = await queue.join(ticketRequest({ userId: "u_1" }));
    const again = ticketRequest({ userId: "u_1" });
    const open = { kind: "open", ticketId: made.ticketId, expiresAt: made.expiresAt };
    expect(await queue.join(again)).toEqual({ ...open, replayed: false });
    await queue.cancel(made.ticketId);
    expect(await queue.join(again)).toEqual({ ...open, replayed: true });
  });

  test(`${name}: a different request with the same key or beside an open ticket is rejected`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const { ticketId } = await queue.join(ticketRequest({ userId: "u_1", key: "k1", attributes: { skill: 1 } }));
    const other = { userId: "u_1", attributes: { skill: 2 } };
    await expect(queue.join(ticketRequest({ ...other, key: "k1" }))).rejects.toMatchObject(idempotencyConflict.kind);
    const refused = queue.join(ticketRequest({ ...other, key: "k2" }));
    await expect(refused).rejects.toMatchObject(ticketOpen.kind);
    await expect(refused).rejects.toThrow(ticketId);
    await expect(
      queue.join(ticketRequest({ userId: "u_1", partySize: 2, attributes: { skill: 1 } })),
    ).rejects.toMatchObject(ticketOpen.kind);
    expect((await queue.find(ticketId))?.ticket.attributes).toEqual({ skill: 1 });
    await queue.cancel(ticketId);
    // A rejection is not stored: the same key succeeds now.
    expect(await queue.join(ticketRequest({ ...other, key: "k2" }))).toMatchObject({ kind: "new", replayed: false });
  });

  test(`${name}: keys and tickets of different users and modes are independent`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const all = [
      await queue.join(ticketRequest({ userId: "u_1", key: "k" })),
      await queue.join(ticketRequest({ userId: "u_2", key: "k" })),
      await queue.join(ticketRequest({ userId: "u_1", key: "k", mode: "ranked" })),
    ];
    expect(new Set(all.map(({ ticketId }) => ticketId)).size).toBe(3);
    expect(all.map(({ kind }) => kind)).toEqual(["new", "new", "new"]);
    expect((await queue.sweep("ranked")).waiting).toBe(1);
  });

  test(`${name}: a user can join again right after a match or a cancel`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [first = "", second = ""] = [
      (await queue.join(ticketRequest({ userId: "u_1" }))).ticketId,
      (await queue.join(ticketRequest({ userId: "u_2" }))).ticketId,
    ];
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
    const again = await queue.join(ticketRequest({ userId: "u_1" }));
    expect(again).toMatchObject({ kind: "new" });
    expect([first, second]).not.toContain(again.ticketId);
    expect(await queue.cancel(again.ticketId)).toBe("CANCELLED");
    expect(await queue.join(ticketRequest({ userId: "u_1" }))).toMatchObject({ kind: "new" });
    await t.allRecorded();
  });

  test(`${name}: a snapshot has all tickets in join order, or the oldest, the newest and some between`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const ids = await joinInOrder(queue, 40);
    const all = await queue.snapshot(mode, 40);
    expect(all.tickets.map(({ ticketId }) => ticketId)).toEqual(ids);
    expect(all.now).toBeGreaterThanOrEqual(all.tickets.at(-1)?.joinedAt ?? Number.POSITIVE_INFINITY);
    const some = (await queue.snapshot(mode, 8)).tickets.map(({ ticketId }) => ticketId);
    expect(some).toHaveLength(8);
    expect(some.slice(0, 4)).toEqual(ids.slice(0, 4));
    expect(some.slice(-2)).toEqual(ids.slice(-2));
    expect(some).toEqual(ids.filter((id) => some.includes(id)));
    expect(await queue.snapshot("ranked", 40)).toMatchObject({ tickets: [] });
  });
}
