/** Random concurrent operations: no ticket is lost and none ends twice. */
import type { Db } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import { repetitions, until } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { QueueUnderTest } from "../conformance.ts";
import type { TicketQueue } from "../index.ts";
import {
  cancelUsers,
  duels,
  expectConsistent,
  type Harness,
  mode,
  readStored,
  terms,
  ticketRequest,
} from "../testing.ts";

type Operation =
  | { readonly kind: "join"; readonly user: number; readonly ticketMs: number; readonly skill: number }
  | { readonly kind: "cancel" | "heartbeat"; readonly nth: number }
  | { readonly kind: "cancel-users"; readonly users: readonly number[] }
  | { readonly kind: "match"; readonly matchesMax: number }
  | { readonly kind: "form" | "sweep" };

const nth = fc.nat(1_000);
// Most tickets outlive the run; some expire after a few steps.
const ticketMs = fc.oneof(
  { weight: 3, arbitrary: fc.constant(600_000) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }) },
);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("join"), user: fc.nat(11), ticketMs, skill: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel"), nth }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("heartbeat"), nth }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("cancel-users"), users: fc.array(fc.nat(11), { maxLength: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("match"), matchesMax: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("form") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sweep") }) },
) as fc.Arbitrary<Operation>;

/** The operations of each of four processes. */
const processes = fc.array(fc.array(operation, { minLength: 8, maxLength: 25 }), { minLength: 4, maxLength: 4 });

/** The responses that clients received. */
interface History {
  readonly joined: Set<string>;
  readonly cancelResults: Map<string, Set<string>>;
}

export function concurrencyConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: after random operations of four processes, every ticket waits or has one end`, {
    timeout: 180_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(processes, async (all) => {
        await using t = await createHarness();
        const history: History = { joined: new Set(), cancelResults: new Map() };
        await Promise.all(all.map((operations) => run({ queue: t.open(), db: t.db, history }, operations)));
        await expectNothingLost(t, history);
      }),
      // Concurrency is not reproducible, so shrinking would test other cases.
      { numRuns: repetitions(12), endOnFailure: true },
    );
  });
}

interface Process {
  readonly queue: TicketQueue;
  readonly db: Db;
  readonly history: History;
}

async function run({ queue, db, history }: Process, operations: readonly Operation[]): Promise<void> {
  for (const each of operations) {
    const joined = [...history.joined];
    const ticketId = "nth" in each ? (joined[each.nth % Math.max(1, joined.length)] ?? "") : "";
    if (each.kind === "join") await join(queue, each, history);
    else if (each.kind === "match") await queue.matchFifo(mode, { ...duels, matchesMax: each.matchesMax });
    else if (each.kind === "form") await form(queue);
    else if (each.kind === "sweep") await queue.sweep(mode);
    else if (each.kind === "cancel-users") await cancelUsers({ queue, db }, each.users.map(userOf));
    else if (ticketId === "") continue;
    else if (each.kind === "heartbeat") await queue.heartbeat(ticketId, 600_000);
    else recordCancel(history, ticketId, await queue.cancel(ticketId));
  }
}

const userOf = (user: number) => `u_${user}`;

async function join(
  queue: TicketQueue,
  { user, ticketMs, skill }: Extract<Operation, { kind: "join" }>,
  history: History,
) {
  try {
    const { ticketId } = await queue.join(ticketRequest({ userId: userOf(user), ticketMs, attributes: { skill } }));
    history.joined.add(ticketId);
  } catch (error) {
    if (!(error instanceof Problem && error.code === "ticket-open")) throw error;
  }
}

/** Proposes the newest ticket with the oldest one, which is not the join order, from a snapshot. */
async function form(queue: TicketQueue): Promise<void> {
  const { tickets } = await queue.snapshot(mode, 20);
  const [oldest, newest] = [tickets[0], tickets.at(-1)];
  if (!oldest || !newest) return;
  const seats = [oldest, newest].map(({ ticketId }, index) => ({ ticketId, team: index + 1 }));
  await queue.commitProposals(mode, [{ seats }], terms);
}

function recordCancel(history: History, ticketId: string, result: string | undefined): void {
  const results = history.cancelResults.get(ticketId) ?? new Set();
  history.cancelResults.set(ticketId, results.add(String(result)));
}

async function expectNothingLost(t: Harness, { joined, cancelResults }: History): Promise<void> {
  const queue = t.open();
  await until(
    "all soon expiring tickets are swept",
    async () => ((await queue.sweep(mode)).nextEndMs ?? 1_000) >= 1_000,
  );
  await t.allRecorded();
  const waiting = (await queue.snapshot(mode, 1_000)).tickets;
  const { ends } = await readStored(t.db);
  const known = [...waiting.map(({ ticketId }) => ticketId), ...ends.map((row) => row.ticket_id)];
  expect(known.sort(), "joined = waiting + ended (M5)").toEqual([...joined].sort());
  expect(new Set(waiting.map(({ userId }) => userId)).size, "one open ticket for a user (M1)").toBe(waiting.length);
  const ended = new Map(ends.map((row) => [row.ticket_id, row.status]));
  for (const [ticketId, results] of cancelResults)
    expect([...results], `the cancel of ${ticketId} returned what is recorded (M3)`).toEqual([ended.get(ticketId)]);
  await expectConsistent(t.db);
  await until("no further match is possible", async () => {
    await queue.sweep(mode);
    return (await queue.matchFifo(mode, duels)).made === 0;
  });
  expect((await queue.sweep(mode)).waiting).toBeLessThanOrEqual(1);
  await t.allRecorded();
  await expectConsistent(t.db);
}
