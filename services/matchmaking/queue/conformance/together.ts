/** Everything at once: whatever players and matchmakers do, in whatever order, no ticket is lost and none ends twice. */
import type { Db } from "@todoke/kernel/db";
import { Problem } from "@todoke/kernel/problem";
import { until } from "@todoke/kernel/testing";
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

type Act =
  | { readonly kind: "join"; readonly user: number; readonly ticketMs: number; readonly skill: number }
  | { readonly kind: "cancel" | "beat"; readonly nth: number }
  | { readonly kind: "bar"; readonly users: readonly number[] }
  | { readonly kind: "match"; readonly matchesMax: number }
  | { readonly kind: "form" | "sweep" };

const nth = fc.nat(1_000);
// Most tickets live through the run; some are over after a few steps.
const ticketMs = fc.oneof(
  { weight: 3, arbitrary: fc.constant(600_000) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }) },
);
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("join"), user: fc.nat(11), ticketMs, skill: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cancel"), nth }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("beat"), nth }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("bar"), users: fc.array(fc.nat(11), { maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("match"), matchesMax: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("form") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sweep") }) },
) as fc.Arbitrary<Act>;

/** What each of four processes does, one thing after the other. */
const lanes = fc.array(fc.array(act, { minLength: 8, maxLength: 25 }), { minLength: 4, maxLength: 4 });

/** What clients were told. */
interface History {
  readonly joined: Set<string>;
  readonly cancelAnswers: Map<string, Set<string>>;
}

export function togetherConforms({ name, createHarness }: QueueUnderTest): void {
  test(`${name}: whatever four processes do at once, every ticket that was given out waits or has one end, as its client was told`, {
    timeout: 180_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(lanes, async (all) => {
        await using t = await createHarness();
        const history: History = { joined: new Set(), cancelAnswers: new Map() };
        await Promise.all(all.map((acts) => live({ queue: t.open(), db: t.db, history }, acts)));
        await expectKept(t, history);
      }),
      // What happens at once never happens the same way again: a smaller case would be another one.
      { numRuns: 12, endOnFailure: true },
    );
  });
}

interface Process {
  readonly queue: TicketQueue;
  readonly db: Db;
  readonly history: History;
}

async function live({ queue, db, history }: Process, acts: readonly Act[]): Promise<void> {
  for (const each of acts) {
    const known = [...history.joined];
    const ticketId = "nth" in each ? (known[each.nth % Math.max(1, known.length)] ?? "") : "";
    if (each.kind === "join") await join(queue, each, history);
    else if (each.kind === "match") await queue.matchInOrder(mode, { ...duels, matchesMax: each.matchesMax });
    else if (each.kind === "form") await form(queue);
    else if (each.kind === "sweep") await queue.sweep(mode);
    else if (each.kind === "bar") await cancelUsers({ queue, db }, each.users.map(userOf));
    else if (ticketId === "") continue;
    else if (each.kind === "beat") await queue.heartbeat(ticketId, 600_000);
    else noted(history, ticketId, await queue.cancel(ticketId));
  }
}

const userOf = (user: number) => `u_${user}`;

async function join(queue: TicketQueue, { user, ticketMs, skill }: Extract<Act, { kind: "join" }>, history: History) {
  try {
    const { ticketId } = await queue.join(ticketRequest({ userId: userOf(user), ticketMs, attributes: { skill } }));
    history.joined.add(ticketId);
  } catch (error) {
    if (!(error instanceof Problem && error.code === "ticket-open")) throw error;
  }
}

/** The newest with the oldest, which is not the order of waiting, from what was seen a moment ago. */
async function form(queue: TicketQueue): Promise<void> {
  const { tickets } = await queue.snapshot(mode, 20);
  const [oldest, newest] = [tickets[0], tickets.at(-1)];
  if (!oldest || !newest) return;
  const seats = [oldest, newest].map(({ ticketId }, place) => ({ ticketId, team: place + 1 }));
  await queue.settle(mode, [{ seats }], terms);
}

function noted(history: History, ticketId: string, answer: string | undefined): void {
  const answers = history.cancelAnswers.get(ticketId) ?? new Set();
  history.cancelAnswers.set(ticketId, answers.add(String(answer)));
}

async function expectKept(t: Harness, { joined, cancelAnswers }: History): Promise<void> {
  const queue = t.open();
  await until("all is swept that is over soon", async () => ((await queue.sweep(mode)).nextEndMs ?? 1_000) >= 1_000);
  await t.allRecorded();
  const waiting = (await queue.snapshot(mode, 1_000)).tickets;
  const { ends } = await readStored(t.db);
  const accounted = [...waiting.map(({ ticketId }) => ticketId), ...ends.map((row) => row.ticket_id)];
  expect(accounted.sort(), "joined = waiting + ended (M5)").toEqual([...joined].sort());
  expect(new Set(waiting.map(({ userId }) => userId)).size, "one open ticket for a user (M1)").toBe(waiting.length);
  const ended = new Map(ends.map((row) => [row.ticket_id, row.status]));
  for (const [ticketId, answers] of cancelAnswers)
    expect([...answers], `a client was told of ${ticketId} what is on record (M3)`).toEqual([ended.get(ticketId)]);
  await expectConsistent(t.db);
  await until("whoever can be matched is", async () => {
    await queue.sweep(mode);
    return (await queue.matchInOrder(mode, duels)).made === 0;
  });
  expect((await queue.sweep(mode)).waiting).toBeLessThanOrEqual(1);
  await t.allRecorded();
  await expectConsistent(t.db);
}
