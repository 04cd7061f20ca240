/** Expiry, by the queue's own clock. */
import { until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import type { QueueUnderTest } from "../conformance.ts";
import { duels, expectConsistent, joinInOrder, mode, readStored, terms, ticketRequest } from "../testing.ts";

export function expiryConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: an expired ticket is never matched and ends as EXPIRED with one event`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const [short = ""] = await joinInOrder(queue, 1, { ticketMs: 30 });
    const [long = ""] = await joinInOrder(queue, 1);
    await until("its time is up", async () => ((await queue.sweep(mode)).nextEndMs ?? 0) > 30);
    expect(await queue.matchFifo(mode, duels)).toEqual({ made: 0 });
    const seats = [short, long].map((ticketId, team) => ({ ticketId, team: team + 1 }));
    expect(await queue.commitProposals(mode, [{ seats }], terms)).toEqual({ made: 0 });
    await t.allRecorded();
    const { ends, events } = await readStored(t.db);
    expect(ends).toMatchObject([{ ticket_id: short, status: "EXPIRED", reason: "timeout" }]);
    expect(events).toMatchObject([{ event_type: "TicketExpired", payload: { ticket_id: short, reason: "timeout" } }]);
    expect(await queue.cancel(short)).toBe("EXPIRED");
    expect(await queue.heartbeat(short, undefined)).toBeUndefined();
    expect((await queue.find(long))?.status).toBe("QUEUED");
    await expectConsistent(t.db);
  });

  test(`${name}: an expired ticket that was not swept yet cannot be matched or kept alive`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const ids = await joinInOrder(queue, 4, { ticketMs: 25 });
    const [a = "", b = "", c = "", d = ""] = ids;
    await until("its time is up", async () => {
      const { now, tickets } = await queue.snapshot(mode, 10);
      return tickets.length === 0 || tickets.every((ticket) => ticket.expiresAt <= now);
    });
    const seats = [a, b].map((ticketId, team) => ({ ticketId, team: team + 1 }));
    expect(await queue.commitProposals(mode, [{ seats }], terms)).toEqual({ made: 0 });
    expect(await queue.heartbeat(c, 60_000)).toBeUndefined();
    expect(await queue.cancel(d)).toBe("EXPIRED");
    expect(await queue.matchFifo(mode, duels)).toEqual({ made: 0 });
    await queue.sweep(mode);
    await t.allRecorded();
    expect((await readStored(t.db)).ended("EXPIRED").sort()).toEqual([...ids].sort());
    await expectConsistent(t.db);
  });

  test(`${name}: a heartbeat keeps a ticket; without one it ends as EXPIRED with reason heartbeat`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const heard = await queue.join(ticketRequest({ heartbeatMs: 600_000, ticketMs: 900_000 }));
    const silent = await queue.join(ticketRequest({ heartbeatMs: 30 }));
    const longer = await queue.heartbeat(heard.ticketId, 700_000);
    expect(longer?.expiresAt).toBe(heard.expiresAt);
    expect(longer && longer.aliveUntil - longer.joinedAt).toBeGreaterThanOrEqual(700_000);
    expect((await queue.heartbeat(heard.ticketId, 1e9))?.aliveUntil).toBe(heard.expiresAt);
    expect((await queue.heartbeat(heard.ticketId, undefined))?.aliveUntil).toBe(heard.expiresAt);
    await until("it was swept", async () => (await queue.sweep(mode)).waiting === 1);
    await t.allRecorded();
    const { ends } = await readStored(t.db);
    expect(ends).toMatchObject([{ ticket_id: silent.ticketId, status: "EXPIRED", reason: "heartbeat" }]);
    expect((await queue.find(heard.ticketId))?.ticket.aliveUntil).toBe(heard.expiresAt);
    await expectConsistent(t.db);
  });

  test(`${name}: a join over an expired ticket ends that one without a sweep`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const old = await queue.join(ticketRequest({ userId: "u_1", ticketMs: 20 }));
    let joined = old;
    await until("there is a new ticket", async () => {
      joined = await queue.join(ticketRequest({ userId: "u_1" }));
      return joined.ticketId !== old.ticketId;
    });
    expect(joined.kind).toBe("new");
    await t.allRecorded();
    expect((await readStored(t.db)).ended("EXPIRED")).toEqual([old.ticketId]);
    expect((await queue.sweep(mode)).waiting).toBe(1);
    await expectConsistent(t.db);
  });

  test(`${name}: a sweep returns the status of the queue`, async () => {
    await using t = await createHarness();
    const queue = t.open();
    const empty = await queue.sweep(mode);
    expect(empty).toEqual({ expired: 0, damaged: 0, waiting: 0 });
    await queue.join(ticketRequest({ ticketMs: 500_000 }));
    await queue.join(ticketRequest({ ticketMs: 900_000, heartbeatMs: 300_000 }));
    const two = await queue.sweep(mode);
    expect(two).toMatchObject({ expired: 0, damaged: 0, waiting: 2 });
    expect(two.oldestMs).toBeGreaterThanOrEqual(0);
    expect(two.oldestMs).toBeLessThan(60_000);
    expect(two.nextEndMs).toBeGreaterThan(200_000);
    expect(two.nextEndMs).toBeLessThanOrEqual(300_000);
  });

  test(`${name}: two concurrent sweeps end 250 expired tickets once each`, async () => {
    await using t = await createHarness();
    const processes = [t.open(), t.open()] as const;
    await Promise.all(Array.from({ length: 250 }, () => processes[0].join(ticketRequest({ ticketMs: 1 }))));
    let expired = 0;
    await until("all are swept", async () => {
      const rounds = await Promise.all(processes.map((queue) => queue.sweep(mode)));
      for (const round of rounds) expired += round.expired;
      return rounds.every((round) => round.waiting === 0);
    });
    expect(expired).toBe(250);
    await t.allRecorded();
    expect((await readStored(t.db)).ended("EXPIRED")).toHaveLength(250);
    await expectConsistent(t.db);
  });
}
