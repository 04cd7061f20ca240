/** Cancelling, also at the same time as a match. */
import { expect, test } from "vitest";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import type { QueueUnderTest } from "../conformance.ts";
import { duels, expectConsistent, joinInOrder, mode, readStored, ticketRequest } from "../testing.ts";

export function cancellingConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: a cancelled ticket is recorded before the call returns and is never matched`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a = "", b = "", c = ""] = await joinInOrder(queue, 3);
    expect(await queue.cancel(b)).toBe("CANCELLED");
    expect(await selectTicketEnd(t.db, b)).toMatchObject({ status: "CANCELLED" });
    expect(await queue.cancel(b)).toBe("CANCELLED");
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 1 });
    expect(await queue.cancel(a)).toBe("MATCHED");
    expect(await selectTicketEnd(t.db, a)).toMatchObject({ status: "MATCHED" });
    await t.allRecorded();
    expect(await queue.cancel(c)).toBe("MATCHED");
    expect(await queue.cancel(`${mode}.${"x".repeat(28)}`)).toBeUndefined();
    const { ended, events } = await readStored(t.db);
    expect(ended("CANCELLED")).toEqual([b]);
    expect(events.map(({ event_type }) => event_type)).toEqual(["MatchMade"]);
    await expectConsistent(t.db);
  });

  test(`${name}: of a cancel and a match at the same time, exactly one takes effect`, async () => {
    await using t = await createHarness();
    const [players, matchmakers] = [t.open(), [t.open(), t.open()]];
    const heard = new Map<string, string | undefined>();
    for (let round = 0; round < 25; round++) {
      const ids = await Promise.all(
        Array.from({ length: 6 }, async () => (await players.join(ticketRequest())).ticketId),
      );
      const cancelled = ids.filter((_, n) => (n + round) % 2 === 0);
      await Promise.all([
        ...matchmakers.map((queue) => queue.matchInOrder(mode, duels)),
        ...cancelled.map(async (id) => heard.set(id, await players.cancel(id))),
        ...matchmakers.map((queue) => queue.matchInOrder(mode, duels)),
      ]);
    }
    await t.allRecorded();
    const { ends } = await readStored(t.db);
    const ended = new Map(ends.map((row) => [row.ticket_id, row.status]));
    expect(heard.size).toBe(75);
    for (const [ticketId, status] of heard) expect(ended.get(ticketId)).toBe(status);
    await expectConsistent(t.db);
  });

  test(`${name}: twenty concurrent cancels of one ticket record one end`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open()] as const;
    const [id = ""] = await joinInOrder(processes[0], 1);
    const heard = await Promise.all(Array.from({ length: 20 }, (_, n) => processes[n % 2 === 0 ? 0 : 1].cancel(id)));
    expect(new Set(heard)).toEqual(new Set(["CANCELLED"]));
    await t.allRecorded();
    expect((await readStored(t.db)).ends).toHaveLength(1);
    expect((await processes[0].sweep(mode)).waiting).toBe(0);
  });
}
