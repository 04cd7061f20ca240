/** Finding the tickets of a user. */
import { expect, test } from "vitest";
import type { QueueUnderTest } from "../conformance.ts";
import { cancelUsers, duels, joinInOrder, mode, ticketRequest } from "../testing.ts";

export function findingConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: a user's open tickets are found in every mode, and no ended or foreign ones`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const modes = [mode, "ranked", "unused"];
    const found = async (userId: string) => {
      await t.allRecorded();
      return (await queue.findOfUser({ userId, modes })).map(({ ticket, status }) => [ticket.ticketId, status]).sort();
    };
    const [duel = ""] = await joinInOrder(queue, 1, { userId: "u_1" });
    const [ranked = ""] = await joinInOrder(queue, 1, { userId: "u_1", mode: "ranked" });
    await joinInOrder(queue, 1, { userId: "u_2", mode: "ranked" });
    expect(await found("u_1")).toEqual([
      [duel, "QUEUED"],
      [ranked, "QUEUED"],
    ]);
    expect(await found("u_3")).toEqual([]);
    await queue.cancel(ranked);
    expect(await found("u_1")).toEqual([[duel, "QUEUED"]]);
    await joinInOrder(queue, 1, { userId: "u_4" });
    expect(await queue.matchFifo(mode, duels)).toEqual({ made: 1 });
    expect(await found("u_1")).toEqual([]);
    const { ticketId: again } = await queue.join(ticketRequest({ userId: "u_1" }));
    expect(await found("u_1")).toEqual([[again, "QUEUED"]]);
    await cancelUsers({ queue, db: t.db }, ["u_1"]);
    expect(await found("u_1")).toEqual([]);
  });
}
