/** Matching in join order. */
import { expect, test } from "vitest";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import type { QueueUnderTest } from "../conformance.ts";
import {
  duels,
  expectConsistent,
  joinInOrder,
  matchedTicketIds,
  mode,
  readStored,
  terms,
  ticketRequest,
} from "../testing.ts";

export function matchingConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: tickets are matched in join order, and an odd one waits`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const ids = await joinInOrder(queue, 21);
    expect(await queue.matchInOrder(mode, { ...duels, matchesMax: 4 })).toEqual({ made: 4 });
    await t.allRecorded();
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 6 });
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 0 });
    await t.allRecorded();
    const pairs = (await matchedTicketIds(t.db)).map((pair) => [...pair].sort());
    // The events of one batch are in no particular order.
    const expected = Array.from({ length: 10 }, (_, n) => ids.slice(2 * n, 2 * n + 2).sort());
    expect(pairs.slice(0, 4).sort()).toEqual(expected.slice(0, 4).sort());
    expect(pairs.slice(4).sort()).toEqual(expected.slice(4).sort());
    expect((await queue.find(ids[20] ?? ""))?.status).toBe("QUEUED");
    await expectConsistent(t.db);
  });

  test(`${name}: parties are skipped and block no single player`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const singles = await joinInOrder(queue, 3);
    const parties = await joinInOrder(queue, 250, { partySize: 2 });
    singles.push(...(await joinInOrder(queue, 6)));
    expect(await queue.matchInOrder(mode, { ...duels, matchesMax: 2 })).toEqual({ made: 2 });
    expect(await queue.matchInOrder(mode, duels)).toEqual({ made: 2 });
    await t.allRecorded();
    const pairs = (await matchedTicketIds(t.db)).map((pair) => [...pair].sort());
    const expected = Array.from({ length: 4 }, (_, n) => singles.slice(2 * n, 2 * n + 2).sort());
    expect(pairs.sort()).toEqual(expected.sort());
    const waiting = [parties[0], parties[249], singles[8]];
    for (const id of waiting) expect((await queue.find(id ?? ""))?.status).toBe("QUEUED");
    await expectConsistent(t.db);
  });

  test(`${name}: a match is recorded with its seats, terms and peers`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const attributes = { skill: 0.1234567890123456, latency: { eu: 12 } };
    const joined = [];
    for (const userId of ["u_1", "u_2", "u_3"]) joined.push(await queue.join(ticketRequest({ userId, attributes })));
    expect(await queue.matchInOrder(mode, { ...terms, players: 3, matchesMax: 9 })).toEqual({ made: 1 });
    await t.allRecorded();
    const ends = await Promise.all(joined.map(({ ticketId }) => selectTicketEnd(t.db, ticketId)));
    expect(ends.map((end) => end?.match?.team)).toEqual([1, 2, 3]);
    expect(new Set(ends.map((end) => end?.match?.matchId)).size).toBe(1);
    expect(ends[1]).toMatchObject({ status: "MATCHED", userId: "u_2", attributes, match: { session: terms.session } });
    expect(ends[1]?.expiresAt).toBe(joined[1]?.expiresAt);
    const peers = ends[1]?.match?.peers ?? [];
    expect([...peers].sort((a, b) => a.team - b.team)).toEqual([
      { userId: "u_1", team: 1, partySize: 1 },
      { userId: "u_3", team: 3, partySize: 1 },
    ]);
    const { events } = await readStored(t.db);
    expect(events.map(({ event_type }) => event_type)).toEqual(["MatchMade"]);
    await expectConsistent(t.db);
  });

  test(`${name}: four concurrent matchers match 200 tickets in join order, each once`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open(), t.open(), t.open()];
    const ids = await joinInOrder(processes[0] as (typeof processes)[0], 200);
    const made = await Promise.all(
      processes.map(async (queue) => {
        for (let all = 0; ; ) {
          const round = await queue.matchInOrder(mode, { ...duels, matchesMax: 3 });
          if (round.made === 0) return all;
          all += round.made;
        }
      }),
    );
    expect(made.reduce((a, b) => a + b)).toBe(100);
    await t.allRecorded();
    const positions = new Map(ids.map((id, index) => [id, index]));
    for (const pair of await matchedTicketIds(t.db)) {
      const [a = 0, b = 0] = pair.map((id) => positions.get(id) ?? -1).sort((x, y) => x - y);
      expect([a % 2, b - a]).toEqual([0, 1]);
    }
    expect((await readStored(t.db)).ended("MATCHED").sort()).toEqual([...ids].sort());
    await expectConsistent(t.db);
  });

  test(`${name}: one process at a time has the forming lease of a mode, until it expires`, async () => {
    await using t = await createHarness();
    const [here, there] = [t.open(), t.open()];
    expect(await here.acquireFormingLease(mode, 60_000)).toBe(true);
    expect(await here.acquireFormingLease(mode, 60_000)).toBe(true);
    expect(await there.acquireFormingLease(mode, 60_000)).toBe(false);
    expect(await there.acquireFormingLease("ranked", 1)).toBe(true);
    await expect.poll(() => here.acquireFormingLease("ranked", 60_000)).toBe(true);
  });
}
