import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import { keepMatching } from "./matcher.ts";
import type { Swept, TicketQueue } from "./queue/index.ts";
import { expectSound, joinInOrder, mode, pairsOf, recordOf, wish } from "./queue/testing.ts";
import { setup } from "./testing.ts";

const topicOf = (of: string) => `matchmaking.tickets.${of}`;

/** Matchers as processes have them: each with a queue and a wake-up connection of its own. */
async function stage() {
  const t = await setup();
  const parts = new AsyncDisposableStack();
  parts.use(t);
  const errors: unknown[] = [];

  async function matcher(over: (queue: TicketQueue) => TicketQueue = (queue) => queue, db: Db = t.open()) {
    const wakeups = parts.use(openWakeups({ url: t.url }));
    await wakeups.listening;
    const queue = over(t.openQueue(db));
    const onError = (error: unknown) => void errors.push(error);
    const seen = new Map<string, number>();
    const onSwept = (of: string, { waiting }: Swept) => void seen.set(of, waiting);
    const modes = () => [mode, ...t.rules().modes.keys()];
    const matching = parts.use(keepMatching({ queue, rules: t.rules, modes, wakeups, topicOf, onError, onSwept }));
    return { ...matching, wakeups, seen };
  }

  const ended = async (status: "MATCHED" | "EXPIRED") => (await recordOf(t.db)).ended(status);
  return { ...t, matcher, ended, errors, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** The same queue; every call is counted by its name. */
function counted(queue: TicketQueue, calls: Record<string, number>): TicketQueue {
  return new Proxy(queue, {
    get(target, name: keyof TicketQueue) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const key = `${String(name)} ${String(args[0])}`;
        calls[key] = (calls[key] ?? 0) + 1;
        return method.apply(target, args);
      };
    },
  });
}

test("two matchers at once make every match once, in the order of waiting, the moment that somebody joins", async () => {
  await using t = await stage();
  const [one, other] = [await t.matcher(), await t.matcher()];
  const queue = t.openQueue();
  const ids: string[] = [];
  const startedAt = performance.now();
  for (let round = 0; round < 20; round++) {
    ids.push(...(await joinInOrder(queue, 2)));
    (round % 2 ? one : other).wakeups.signal(topicOf(mode));
  }
  await until("all are matched", async () => (await t.ended("MATCHED")).length === ids.length);
  // Without the wake-ups it would have been the poll, seconds later.
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect((await pairsOf(t.db)).flat()).toEqual(ids);
  await expectSound(t.db);
  expect(t.errors).toEqual([]);
});

/** Counts every statement that goes to PostgreSQL by this pool. */
function statementsOf(db: Db): { count: number } {
  const sent = { count: 0 };
  db.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.assign(client, {
      query(...args: unknown[]) {
        sent.count++;
        return query(...args);
      },
    });
  });
  return sent;
}

test("an idle matcher asks each queue once in a few seconds, by a statement or two, and nothing else", async () => {
  await using t = await stage();
  const calls: Record<string, number> = {};
  const db = t.open();
  const sent = statementsOf(db);
  await t.matcher((queue) => counted(queue, calls), db);
  const modes = [...t.rules().modes.keys()];
  const swept = (times: number) => () => modes.every((of) => (calls[`sweep ${of}`] ?? 0) >= times);
  // The first look of a mode asks for more than a sweep, and its calls come one after the other: it is over by the second.
  await until("each mode was looked at", swept(2), { withinMs: 30_000 });
  const [first, sentBefore, startedAt] = [{ ...calls }, sent.count, performance.now()];
  await until("each mode was looked at again", swept(3), { withinMs: 30_000 });
  expect(performance.now() - startedAt).toBeGreaterThan(3_000);
  expect(sent.count - sentBefore).toBeLessThanOrEqual(2 * (modes.length + 2));
  const since = Object.entries(calls).filter(([name, times]) => times > (first[name] ?? 0));
  expect(since.every(([name]) => name.startsWith("sweep "))).toBe(true);
  expect(since.reduce((sum, [name, times]) => sum + times - (first[name] ?? 0), 0)).toBeLessThanOrEqual(
    modes.length + 2,
  );
}, 90_000);

test("a wake-up that was lost costs a few seconds and no match", async () => {
  await using t = await stage();
  await t.matcher();
  const ids = await joinInOrder(t.openQueue(), 2);
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length, { withinMs: 15_000 });
}, 30_000);

test("a window that widens is seen while nobody joins, and a change of rules counts at once", async () => {
  await using t = await stage();
  const matcher = await t.matcher();
  const queue = t.openQueue();
  const narrow = (limit: number) => [{ afterMs: 0, limit }];
  const ranked = t.rules().modes.get("ranked");
  if (!ranked?.skill) expect.fail("there is no ranked mode");
  const { skill, ...rest } = ranked;
  t.changeRules((modes) => void modes.set("ranked", { ...rest, skill: { ...skill, steps: narrow(10) } }));
  const wishes = [1_000, 1_200].map((value) => wish({ mode: "ranked", attributes: { [skill.attribute]: value } }));
  for (const each of wishes) await queue.join(each);
  matcher.wakeups.signal(topicOf("ranked"));
  t.changeRules((modes) => {
    modes.set("ranked", { ...rest, skill: { ...skill, steps: [...narrow(10), { afterMs: 1_500, limit: 500 }] } });
  });
  matcher.wake();
  await until("they are matched", async () => (await t.ended("MATCHED")).length === 2);
  const { ends } = await recordOf(t.db);
  const [{ waited, rules_version }] = (
    await t.db.query(`select min(extract(epoch from e.waited) * 1000)::int as waited, max(m.rules_version) as rules_version
                        from ticket_ends e join matches m using (match_id)`)
  ).rows;
  expect(ends).toHaveLength(2);
  expect(waited).toBeGreaterThanOrEqual(1_400); // The one who joined second has waited a little less.
  expect(waited).toBeLessThan(3_700); // Looked at every second, and not only when something else is due.
  expect(rules_version).toBe(t.rules().version);
});

test("who waits in a mode that has left the rules is matched no more, and ends when their time is up", async () => {
  await using t = await stage();
  const matcher = await t.matcher();
  const queue = t.openQueue();
  await queue.join(wish({ ticketMs: 2_500 }));
  matcher.wakeups.signal(topicOf(mode));
  await until("one is seen to wait", () => matcher.seen.get(mode) === 1);
  t.changeRules((modes) => void modes.delete(mode));
  await queue.join(wish({ ticketMs: 500 }));
  matcher.wake();
  await until("both have expired", async () => (await t.ended("EXPIRED")).length === 2);
  expect(await t.ended("MATCHED")).toEqual([]);
  await expectSound(t.db);
});

test("what fails in one mode is told and tried again, and holds up no other", async () => {
  await using t = await stage();
  let broken = true;
  const { wakeups } = await t.matcher((queue) => ({
    ...queue,
    sweep: (of) => (broken && of === "ranked" ? Promise.reject(new Error("no")) : queue.sweep(of)),
  }));
  const ids = await joinInOrder(t.openQueue(), 2);
  wakeups.signal(topicOf(mode));
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length);
  expect(t.errors.length).toBeGreaterThan(0);
  // With a pause that grows, and not as fast as it can.
  expect(t.errors.length).toBeLessThan(20);
  expect(String(t.errors[0])).toBe("Error: making matches in ranked failed");
  broken = false;
  const [one, other] = [1_000, 1_000].map((skill) => wish({ mode: "ranked", attributes: { skill } }));
  for (const each of [one, other]) if (each) await t.openQueue().join(each);
  await until("ranked goes on", async () => (await t.ended("MATCHED")).length === 4);
});

test("a stop waits for the look under way, and no other follows", async () => {
  await using t = await stage();
  const calls: Record<string, number> = {};
  const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const matcher = await t.matcher((queue) => ({
    ...counted(queue, calls),
    async matchInOrder(of, round) {
      reached.resolve();
      await release.promise;
      return queue.matchInOrder(of, round);
    },
  }));
  const ids = await joinInOrder(t.openQueue(), 2);
  await reached.promise;
  let isStopped = false;
  const stopped = matcher[Symbol.asyncDispose]().then(() => {
    isStopped = true;
  });
  matcher.wakeups.signal(topicOf(mode));
  expect(isStopped).toBe(false);
  release.resolve();
  await stopped;
  const before = { ...calls };
  expect((await t.ended("MATCHED")).sort()).toEqual([...ids].sort());
  matcher.wakeups.signal(topicOf(mode));
  expect(calls).toEqual(before);
});
