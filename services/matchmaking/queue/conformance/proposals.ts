/** Committing proposals, which were formed from a snapshot that may be outdated. */
import { expect, test } from "vitest";
import { selectTicketEnd } from "../../store/ended-tickets.ts";
import type { QueueUnderTest } from "../conformance.ts";
import type { Proposal } from "../index.ts";
import { expectConsistent, joinInOrder, mode, readStored, terms, ticketRequest } from "../testing.ts";

const proposal = (...ids: (string | undefined)[]): Proposal => ({
  seats: ids.map((ticketId = "", index) => ({ ticketId, team: index + 1 })),
});

export function proposalsConform({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: a proposal becomes a match with its teams and its region`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a = "", b = "", c = ""] = await joinInOrder(queue, 3, { partySize: 2 });
    const seats = [
      { ticketId: c, team: 1 },
      { ticketId: a, team: 1 },
      { ticketId: b, team: 2 },
    ];
    expect(await queue.settle(mode, [{ seats, region: "eu" }], terms)).toEqual({ made: 1 });
    await t.allRecorded();
    const end = await selectTicketEnd(t.db, c);
    expect(end).toMatchObject({ status: "MATCHED", match: { team: 1, region: "eu", session: terms.session } });
    expect(end?.match?.peers.map(({ team, partySize }) => [team, partySize]).sort()).toEqual([
      [1, 2],
      [2, 2],
    ]);
    await expectConsistent(t.db);
  });

  test(`${name}: a proposal with an ended or already matched ticket makes no match`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a, b, c, d, e, f] = await joinInOrder(queue, 6);
    await queue.cancel(b ?? "");
    const proposals = [proposal(a, b), proposal(c, d), proposal(d, e), proposal(e, `${mode}.${"x".repeat(28)}`)];
    expect(await queue.settle(mode, [...proposals, proposal(e, f)], terms)).toEqual({ made: 2 });
    expect(await queue.settle(mode, [proposal(c, d)], terms)).toEqual({ made: 0 });
    expect(await queue.settle(mode, [], terms)).toEqual({ made: 0 });
    await t.allRecorded();
    expect((await readStored(t.db)).ended("MATCHED").sort()).toEqual([c, d, e, f].sort());
    expect((await queue.find(a ?? ""))?.status).toBe("QUEUED");
    await expectConsistent(t.db);
  });

  test(`${name}: a proposal that names a ticket twice makes no match`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a, b] = await joinInOrder(queue, 2);
    expect(await queue.settle(mode, [proposal(a, a), proposal(b, a, b)], terms)).toEqual({ made: 0 });
    expect((await queue.sweep(mode)).waiting).toBe(2);
  });

  test(`${name}: a proposal with a ticket of another mode makes no match`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [a] = await joinInOrder(queue, 1);
    const { ticketId: other } = await queue.join(ticketRequest({ userId: "u_other", mode: "another" }));
    expect(await queue.settle(mode, [proposal(a, other)], terms)).toEqual({ made: 0 });
    for (const ticketId of [a ?? "", other]) expect((await queue.find(ticketId))?.status).toBe("QUEUED");
  });

  test(`${name}: two processes that commit the same proposals at once make each match once`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open()];
    const ids = await joinInOrder(processes[0] as (typeof processes)[0], 60);
    const pairs = (shift: number) =>
      Array.from({ length: 29 }, (_, n) => proposal(ids[2 * n + shift], ids[2 * n + 1 + shift]));
    const made = await Promise.all(
      processes.flatMap((queue, n) => [queue.settle(mode, pairs(0), terms), queue.settle(mode, pairs(n), terms)]),
    );
    await t.allRecorded();
    const { matches, ended } = await readStored(t.db);
    expect(made.reduce((all, round) => all + round.made, 0)).toBe(matches.length);
    expect(ended("MATCHED")).toHaveLength(2 * matches.length);
    expect((await processes[0]?.sweep(mode))?.waiting).toBe(60 - 2 * matches.length);
    await expectConsistent(t.db);
  });

  test(`${name}: proposals beyond the size of a batch are all committed`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const ids = await Promise.all(
      Array.from({ length: 260 }, async () => (await queue.join(ticketRequest())).ticketId),
    );
    const proposals = Array.from({ length: 130 }, (_, n) => proposal(ids[2 * n], ids[2 * n + 1]));
    expect(await queue.settle(mode, proposals, terms)).toEqual({ made: 130 });
    await t.allRecorded();
    await expectConsistent(t.db);
  });
}
