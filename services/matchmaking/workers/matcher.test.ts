import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import type { SweepResult, TicketQueue } from "../queue/index.ts";
import { expectConsistent, joinInOrder, matchedTicketIds, mode, readStored, ticketRequest } from "../queue/testing.ts";
import { createHarness } from "../testing.ts";
import { type MatcherOptions, startMatcher } from "./matcher.ts";

const topicOf = (of: string) => `matchmaking.tickets.${of}`;

interface MatcherAbout extends Partial<Pick<MatcherOptions, "idleMs" | "wakeups">> {
  readonly over?: (queue: TicketQueue) => TicketQueue;
  readonly db?: Db;
}

/** Longer than any test: what is done before then was done for another reason. */
const neverIdle = { idleMs: 3_600_000 };

/** Matchers as processes have them: each with a queue and a wake-up connection of its own. */
async function openHarness() {
  const t = await createHarness();
  const parts = new AsyncDisposableStack();
  parts.use(t);
  const errors: unknown[] = [];

  /** `seen` has how many waited in the mode, of each look at it. */
  async function matcher({ over = (queue) => queue, db = t.open(), ...more }: MatcherAbout = {}) {
    const wakeups = parts.use(openWakeups({ url: t.url }));
    await wakeups.listening;
    const queue = over(t.openQueue(db));
    const onError = (error: unknown) => void errors.push(error);
    const seen: number[] = [];
    const onSwept = (of: string, { waiting }: SweepResult) => void (of === mode && seen.push(waiting));
    const modes = () => [mode, ...t.rules().modes.keys()];
    const about = { queue, rules: t.rules, modes, wakeups, topicOf, onError, onSwept };
    const matching = parts.use(startMatcher({ ...about, ...more }));
    return { ...matching, wakeups, seen };
  }

  const ended = async (status: "MATCHED" | "EXPIRED") => (await readStored(t.db)).ended(status);
  return { ...t, matcher, ended, errors, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

interface Call {
  /** "sweep duel". */
  readonly what: string;
  readonly at: number;
  /** Statements that had been sent by then. */
  readonly sent: number;
}

/** The same queue; every call is noted when it is made. */
function noted(queue: TicketQueue, calls: Call[], sent = { count: 0 }): TicketQueue {
  return new Proxy(queue, {
    get(target, name: keyof TicketQueue) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push({ what: `${String(name)} ${String(args[0])}`, at: performance.now(), sent: sent.count });
        return method.apply(target, args);
      };
    },
  });
}

test("two matchers at once make every match once, in the order of waiting, the moment that somebody joins", async () => {
  await using t = await openHarness();
  // Without a wake-up nobody would be looked at after the first look.
  const [one, other] = [await t.matcher(neverIdle), await t.matcher(neverIdle)];
  await until("both have had their first look", () => [one, other].every(({ seen }) => seen.length > 0));
  const queue = t.openQueue();
  const ids: string[] = [];
  for (let round = 0; round < 20; round++) {
    ids.push(...(await joinInOrder(queue, 2)));
    (round % 2 ? one : other).wakeups.signal(topicOf(mode));
  }
  await until("all are matched", async () => (await t.ended("MATCHED")).length === ids.length);
  expect((await matchedTicketIds(t.db)).flat()).toEqual(ids);
  await expectConsistent(t.db);
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
  await using t = await openHarness();
  const calls: Call[] = [];
  const db = t.open();
  const sent = statementsOf(db);
  await t.matcher({ over: (queue) => noted(queue, calls, sent), db, wakeups: { on: () => () => {} } });
  const modes = [...t.rules().modes.keys()];
  const sweepsOf = (of: string) => calls.filter(({ what }) => what === `sweep ${of}`);
  const swept = (times: number) => () => modes.every((of) => sweepsOf(of).length >= times);
  // The first look of a mode asks for more than a sweep, and its calls come one after the other: it is over by the second.
  await until("each mode was looked at twice", swept(2));
  const before = calls.length;
  await until("each mode was looked at again", swept(3));
  const since = calls.slice(before);
  expect(since.filter(({ what }) => !what.startsWith("sweep "))).toEqual([]);
  // A call is over by the next one, whichever mode that is for.
  for (const [n, next] of since.slice(1).entries()) expect(next.sent - (since[n]?.sent ?? 0)).toBeOneOf([1, 2]);
  for (const of of modes) {
    const times = sweepsOf(of).map(({ at }) => at);
    for (const [n, at] of times.slice(1).entries()) expect(at - (times[n] ?? at)).toBeGreaterThan(3_000);
  }
});

test("a wake-up that was lost costs a few seconds and no match", async () => {
  await using t = await openHarness();
  await t.matcher();
  const ids = await joinInOrder(t.openQueue(), 2);
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length);
});

test("a window that widens is seen while nobody joins, and a change of rules counts at once", async () => {
  await using t = await openHarness();
  // What is in use is looked at every second, and not only when something else is due: here nothing is.
  const matcher = await t.matcher(neverIdle);
  const queue = t.openQueue();
  const narrow = (limit: number) => [{ afterMs: 0, limit }];
  const ranked = t.rules().modes.get("ranked");
  if (!ranked?.skill) expect.fail("there is no ranked mode");
  const { skill, ...rest } = ranked;
  t.changeRules((modes) => void modes.set("ranked", { ...rest, skill: { ...skill, steps: narrow(10) } }));
  const wishes = [1_000, 1_200].map((value) =>
    ticketRequest({ mode: "ranked", attributes: { [skill.attribute]: value } }),
  );
  for (const each of wishes) await queue.join(each);
  matcher.wakeups.signal(topicOf("ranked"));
  t.changeRules((modes) => {
    modes.set("ranked", { ...rest, skill: { ...skill, steps: [...narrow(10), { afterMs: 2_500, limit: 500 }] } });
  });
  matcher.wake();
  await until("they are matched", async () => (await t.ended("MATCHED")).length === 2);
  const { ends } = await readStored(t.db);
  const [{ waited, rules_version }] = (
    await t.db.query(`select max(extract(epoch from e.waited) * 1000)::int as waited, max(m.rules_version) as rules_version
                        from ticket_ends e join matches m using (match_id)`)
  ).rows;
  expect(ends).toHaveLength(2);
  expect(waited).toBeGreaterThanOrEqual(2_500);
  expect(rules_version).toBe(t.rules().version);
});

test("who waits in a mode that has left the rules is matched no more, and ends when their time is up", async () => {
  await using t = await openHarness();
  const matcher = await t.matcher({ idleMs: 50 });
  const queue = t.openQueue();
  await joinInOrder(queue, 1);
  await until("one is seen to wait", () => matcher.seen.includes(1));
  t.changeRules((modes) => void modes.delete(mode));
  // A look that had begun by then goes by the rules that it began with. The second one from now on does not.
  const looks = matcher.seen.length;
  await until("the rules as they are now hold", () => matcher.seen.length >= looks + 2);
  await joinInOrder(queue, 1);
  matcher.wake();
  const sawBoth = () => matcher.seen.filter((waiting) => waiting === 2).length;
  await until("both are seen to wait, and that look is over, for there was another", () => sawBoth() > 1);
  await t.db.query(`update tickets set expires_at = over.at, alive_until = over.at
                      from (select date_trunc('milliseconds', now()) as at) over`);
  await until("both have expired", async () => (await t.ended("EXPIRED")).length === 2);
  expect(await t.ended("MATCHED")).toEqual([]);
  await expectConsistent(t.db);
});

test("what fails in one mode is told and tried again, and holds up no other", async () => {
  await using t = await openHarness();
  let broken = true;
  const tries: number[] = [];
  const failing = (queue: TicketQueue): TicketQueue => ({
    ...queue,
    sweep(of) {
      if (!broken || of !== "ranked") return queue.sweep(of);
      tries.push(performance.now());
      return Promise.reject(new Error("no"));
    },
  });
  const { wakeups } = await t.matcher({ over: failing });
  const ids = await joinInOrder(t.openQueue(), 2);
  wakeups.signal(topicOf(mode));
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length);
  await until("it was tried again and again", () => tries.length > 3);
  // With a pause that grows, and not as fast as it can.
  for (const [n, at] of tries.slice(1).entries())
    expect(at - (tries[n] ?? at)).toBeGreaterThanOrEqual(Math.min(2_500, 50 * 2 ** n));
  expect(t.errors.map(String)).toContain("Error: making matches in ranked failed");
  broken = false;
  const [one, other] = [1_000, 1_000].map((skill) => ticketRequest({ mode: "ranked", attributes: { skill } }));
  for (const each of [one, other]) if (each) await t.openQueue().join(each);
  await until("ranked goes on", async () => (await t.ended("MATCHED")).length === 4);
});

test("a stop waits for the look under way, and no other follows", async () => {
  await using t = await openHarness();
  const calls: Call[] = [];
  const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held = (queue: TicketQueue): TicketQueue => ({
    ...noted(queue, calls),
    async matchInOrder(of, round) {
      reached.resolve();
      await release.promise;
      return queue.matchInOrder(of, round);
    },
  });
  const matcher = await t.matcher({ over: held });
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
  const before = [...calls];
  expect((await t.ended("MATCHED")).sort()).toEqual([...ids].sort());
  matcher.wakeups.signal(topicOf(mode));
  expect(calls).toEqual(before);
});
