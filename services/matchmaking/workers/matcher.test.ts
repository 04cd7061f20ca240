import type { Db } from "@todoke/kernel/db";
import { until } from "@todoke/kernel/testing";
import { openWakeups } from "@todoke/kernel/worker";
import { expect, test } from "vitest";
import type { SweepResult, TicketQueue } from "../queue/index.ts";
import { expectConsistent, joinInOrder, matchedTicketIds, mode, readStored, ticketRequest } from "../queue/testing.ts";
import { builtInRules } from "../rules/index.ts";
import { createHarness } from "../testing.ts";
import { type MatcherOptions, startMatcher } from "./matcher.ts";
import { createModeMatcher } from "./mode-matcher.ts";

const topicOf = (of: string) => `matchmaking.tickets.${of}`;

interface TestMatcherOptions extends Partial<Pick<MatcherOptions, "idleMs" | "wakeups">> {
  readonly wrap?: (queue: TicketQueue) => TicketQueue;
  readonly db?: Db;
}

/** Longer than any test, so that no run is due to the idle interval. */
const neverIdle = { idleMs: 3_600_000 };

/** Each matcher has a queue and a wake-up connection of its own, like a process. */
async function openHarness() {
  const t = await createHarness();
  const parts = new AsyncDisposableStack();
  parts.use(t);
  const errors: unknown[] = [];

  /** `seen` has the number of waiting tickets at each sweep of the mode. */
  async function matcher({ wrap = (queue) => queue, db = t.open(), ...more }: TestMatcherOptions = {}) {
    const wakeups = parts.use(openWakeups({ url: t.url }));
    await wakeups.listening;
    const queue = wrap(t.openQueue(db));
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
  readonly name: string;
  readonly at: number;
  /** Statements sent before the call. */
  readonly sent: number;
}

/** The same queue, with its calls recorded. */
function recordCalls(queue: TicketQueue, calls: Call[], sent = { count: 0 }): TicketQueue {
  return new Proxy(queue, {
    get(target, name: keyof TicketQueue) {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push({ name: `${String(name)} ${String(args[0])}`, at: performance.now(), sent: sent.count });
        return method.apply(target, args);
      };
    },
  });
}

test("two matchers make every match once, in join order, right after a join", async () => {
  await using t = await openHarness();
  // After the first run, only a wake-up causes another one.
  const [one, other] = [await t.matcher(neverIdle), await t.matcher(neverIdle)];
  await until("both have run once", () => [one, other].every(({ seen }) => seen.length > 0));
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

/** Counts the statements of this pool. */
function countStatements(db: Db): { count: number } {
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

test("an idle matcher only sweeps each queue, every few seconds, with one or two statements", async () => {
  await using t = await openHarness();
  const calls: Call[] = [];
  const db = t.open();
  const sent = countStatements(db);
  await t.matcher({ wrap: (queue) => recordCalls(queue, calls, sent), db, wakeups: { on: () => () => {} } });
  const modes = [...t.rules().modes.keys()];
  const sweepsOf = (of: string) => calls.filter(({ name }) => name === `sweep ${of}`);
  const swept = (times: number) => () => modes.every((of) => sweepsOf(of).length >= times);
  // The first run of a mode does more than a sweep; it has ended when the second run begins.
  await until("each mode ran twice", swept(2));
  const before = calls.length;
  await until("each mode ran again", swept(3));
  const since = calls.slice(before);
  expect(since.filter(({ name }) => !name.startsWith("sweep "))).toEqual([]);
  // A call has ended when the next one begins.
  for (const [n, next] of since.slice(1).entries()) expect(next.sent - (since[n]?.sent ?? 0)).toBeOneOf([1, 2]);
  for (const of of modes) {
    const times = sweepsOf(of).map(({ at }) => at);
    for (const [n, at] of times.slice(1).entries()) expect(at - (times[n] ?? at)).toBeGreaterThan(3_000);
  }
});

test("a lost wake-up costs a few seconds and no match", async () => {
  await using t = await openHarness();
  await t.matcher();
  const ids = await joinInOrder(t.openQueue(), 2);
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length);
});

test("a widening skill window is applied without a join, and a change of rules at once", async () => {
  await using t = await openHarness();
  // A mode with waiting tickets runs every second, even if nothing else is due.
  const matcher = await t.matcher(neverIdle);
  const queue = t.openQueue();
  const narrow = (limit: number) => [{ afterMs: 0, limit }];
  const ranked = t.rules().modes.get("ranked");
  if (!ranked?.skill) expect.fail("there is no ranked mode");
  const { skill, ...rest } = ranked;
  t.changeRules((modes) => void modes.set("ranked", { ...rest, skill: { ...skill, steps: narrow(10) } }));
  const requests = [1_000, 1_200].map((value) =>
    ticketRequest({ mode: "ranked", attributes: { [skill.attribute]: value } }),
  );
  for (const each of requests) await queue.join(each);
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

test("tickets of a mode that has left the rules are not matched and expire", async () => {
  await using t = await openHarness();
  const matcher = await t.matcher({ idleMs: 50 });
  const queue = t.openQueue();
  await joinInOrder(queue, 1);
  await until("one ticket is seen", () => matcher.seen.includes(1));
  t.changeRules((modes) => void modes.delete(mode));
  // A run in progress uses the rules that it began with; the second run from now uses the new ones.
  const runs = matcher.seen.length;
  await until("the new rules apply", () => matcher.seen.length >= runs + 2);
  await joinInOrder(queue, 1);
  matcher.wake();
  const sawBoth = () => matcher.seen.filter((waiting) => waiting === 2).length;
  await until("both tickets are seen, in a run that has ended", () => sawBoth() > 1);
  await t.db.query(`update tickets set expires_at = expiry.at, alive_until = expiry.at
                      from (select date_trunc('milliseconds', now()) as at) expiry`);
  await until("both have expired", async () => (await t.ended("EXPIRED")).length === 2);
  expect(await t.ended("MATCHED")).toEqual([]);
  await expectConsistent(t.db);
});

test("an error in one mode is reported and retried, and delays no other mode", async () => {
  await using t = await openHarness();
  let broken = true;
  const attempts: number[] = [];
  const failing = (queue: TicketQueue): TicketQueue => ({
    ...queue,
    sweep(of) {
      if (!broken || of !== "ranked") return queue.sweep(of);
      attempts.push(performance.now());
      return Promise.reject(new Error("no"));
    },
  });
  const { wakeups } = await t.matcher({ wrap: failing });
  const ids = await joinInOrder(t.openQueue(), 2);
  wakeups.signal(topicOf(mode));
  await until("they are matched", async () => (await t.ended("MATCHED")).length === ids.length);
  await until("it was retried several times", () => attempts.length > 3);
  // With growing backoff.
  for (const [n, at] of attempts.slice(1).entries())
    expect(at - (attempts[n] ?? at)).toBeGreaterThanOrEqual(Math.min(2_500, 50 * 2 ** n));
  expect(t.errors.map(String)).toContain("Error: making matches in ranked failed");
  broken = false;
  const [one, other] = [1_000, 1_000].map((skill) => ticketRequest({ mode: "ranked", attributes: { skill } }));
  for (const each of [one, other]) if (each) await t.openQueue().join(each);
  await until("ranked continues", async () => (await t.ended("MATCHED")).length === 4);
});

test("a stop waits for the run in progress, and no other follows", async () => {
  await using t = await openHarness();
  const calls: Call[] = [];
  const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held = (queue: TicketQueue): TicketQueue => ({
    ...recordCalls(queue, calls),
    async matchFifo(of, round) {
      reached.resolve();
      await release.promise;
      return queue.matchFifo(of, round);
    },
  });
  const matcher = await t.matcher({ wrap: held });
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

/** A matcher of one mode on a queue without tickets, so that only a wake-up makes it look for matches. */
async function openModeMatcher(matchFifo: (call: number) => void) {
  const { modes, version } = await builtInRules();
  let calls = 0;
  const queue = {
    sweep: async () => ({ expired: 0, damaged: 0, waiting: 0 }),
    async matchFifo() {
      matchFifo(++calls);
      return { made: 0 };
    },
    acquireFormingLease: () => expect.fail("the mode has no conditions"),
    snapshot: () => expect.fail("the mode has no conditions"),
    commitProposals: () => expect.fail("the mode has no conditions"),
  };
  const matcher = createModeMatcher(mode, { queue, ...neverIdle });
  return { matcher, calls: () => calls, runOnce: () => matcher.runOnce({ rules: modes.get(mode), version }) };
}

test("a mode whose run failed looks for matches in its next run, without another wake-up", async () => {
  const t = await openModeMatcher((call) => {
    if (call === 1) throw new Error("no");
  });
  await expect(t.runOnce()).rejects.toThrow("no");
  expect(t.matcher.dueAt).toBe(0);
  await t.runOnce();
  expect(t.calls()).toBe(2);
});

test("a mode that is woken during a run looks for matches in its next run", async () => {
  const t = await openModeMatcher((call) => {
    if (call === 1) t.matcher.wake();
  });
  await t.runOnce();
  expect(t.matcher.dueAt).toBe(0);
  await t.runOnce();
  expect(t.calls()).toBe(2);
});
