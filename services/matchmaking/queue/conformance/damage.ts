/** Damaged tickets are quarantined and block no others. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { QueueUnderTest } from "../conformance.ts";
import { duels, expectConsistent, joinInOrder, matchedTicketIds, mode, readStored, terms } from "../testing.ts";

export function damageConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: a damaged oldest ticket is quarantined, and the others are matched in join order`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [bad = "", ...ids] = await joinInOrder(queue, 5);
    await t.damage(bad);
    let made = 0;
    await until("the others are matched", async () => {
      made += (await queue.matchInOrder(mode, duels)).made;
      return made === 2;
    });
    await t.allRecorded();
    expect((await matchedTicketIds(t.db)).map((pair) => [...pair].sort()).sort()).toEqual(
      [ids.slice(0, 2).sort(), ids.slice(2).sort()].sort(),
    );
    expect((await readStored(t.db)).damaged).toEqual([bad]);
    expect((await queue.sweep(mode)).waiting).toBe(0);
    await expectConsistent(t.db);
  });

  test(`${name}: a damaged ticket is in no snapshot and no match, and is quarantined once`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a = "", bad = "", b = ""] = await joinInOrder(queue, 3);
    await t.damage(bad);
    const ofIds = (...ids: string[]) => ({ seats: ids.map((ticketId, n) => ({ ticketId, team: n + 1 })) });
    expect(await queue.settle(mode, [ofIds(a, bad), ofIds(a, b)], terms)).toEqual({ made: 1 });
    expect((await queue.snapshot(mode, 10)).tickets.map(({ ticketId }) => ticketId)).toEqual([]);
    await queue.sweep(mode);
    expect((await queue.sweep(mode)).waiting).toBe(0);
    expect(await queue.find(bad)).toBeUndefined();
    await t.allRecorded();
    expect((await readStored(t.db)).damaged).toEqual([bad]);
    await expectConsistent(t.db);
  });
}
