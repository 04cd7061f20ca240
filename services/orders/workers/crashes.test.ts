/** SIGKILL and SIGSTOP of senders and of the broker simulator: every order is taken once. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { resolveProgram, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { seededRandom } from "../brokers/faults.ts";
import { startSimulator } from "../simulator/testing.ts";
import { createHarness } from "./testing/harness.ts";
import type { SenderProcessOptions, Step } from "./testing/sender-process.ts";

const windowMs = 4_000;
/** On a busy machine replies often come too late, and each check is delayed longer. */
const longWait = { withinMs: 240_000 };
const long = 600_000;

async function createCrashHarness({
  dedupes,
  args = [],
}: {
  readonly dedupes: boolean;
  readonly args?: readonly string[];
}) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await createHarness({ adapter: "http" }));
  const window = ["--window-ms", String(windowMs), "--slow-ms", "1500"];
  const simulator = parts.use(await startSimulator(...window, ...(dedupes ? [] : ["--no-dedupe"]), ...args));

  async function startSender(
    more: Pick<SenderProcessOptions, "step" | "signal" | "leaseMs"> = {},
  ): Promise<ChildProcess> {
    const { url, secret } = simulator;
    const options = { databaseUrl: t.url, brokerUrl: url.href, secret, dedupes, windowMs, ...more };
    const program = resolveProgram(new URL("./testing/sender-process.ts", import.meta.url));
    const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["ignore", "pipe", "ignore"] });
    parts.defer(() => kill(child));
    await once(child.stdout as NodeJS.ReadableStream, "data");
    return child;
  }

  return {
    ...t,
    simulator,
    startSender,
    areAllEnded: async () => (await t.states()).every(({ status }) => status === "succeeded" || status === "aborted"),
    /** The guarantee: the broker has taken exactly the orders that succeeded, each once. */
    async expectEachTakenOnce(numberOfOrders: number): Promise<void> {
      const taken = simulator.taken().map((order) => order.client_order_id);
      const succeeded = await t.rows(`select client_order_id from outbox_orders where status = 'succeeded'`);
      expect(await t.rows(`select from outbox_orders`)).toHaveLength(numberOfOrders);
      expect(taken.toSorted()).toEqual(succeeded.map((row) => row.client_order_id).toSorted());
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

function isStopped({ pid }: ChildProcess): boolean {
  return spawnSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" }).stdout.startsWith("T");
}

const orders = [1, 2, 3, 4, 5, 6];
const steps: readonly (readonly [string, Step])[] = [
  ["has claimed", "claimed"],
  ["has recorded the dispatch", "recorded"],
  ["is about to send", "sending"],
  ["has the reply", "replied"],
  ["has settled", "settled"],
];

for (const dedupes of [true, false]) {
  const kind = dedupes ? "a broker that deduplicates" : "a broker that does not";

  test.concurrent.each(steps)(
    `${kind}: every order is taken once if a sender is killed when it %s`,
    async (_, step) => {
      await using s = await createCrashHarness({ dedupes });
      const dying = await s.startSender({ step });
      const died = once(dying, "exit");
      await s.accept(orders);
      await died;
      await s.startSender();
      await until("all have ended", s.areAllEnded, longWait);
      await s.expectEachTakenOnce(orders.length);
      expect((await s.states()).map(({ status }) => status)).toEqual(orders.map(() => "succeeded"));
    },
    long,
  );

  test.concurrent(
    `${kind}: every order is taken once if a sender is killed before the broker replies`,
    async () => {
      await using s = await createCrashHarness({ dedupes });
      await s.simulator.fault("slow", "late", "slow", "late");
      const dying = await s.startSender();
      await s.accept(orders);
      await until("bytes are out", () => s.simulator.entries().some((entry) => entry.kind === "taken"), longWait);
      await kill(dying);
      await s.startSender();
      await until("all have ended", s.areAllEnded, longWait);
      await s.expectEachTakenOnce(orders.length);
    },
    long,
  );

  test(
    `${kind}: every order is taken once if senders and a faulty broker are killed`,
    async () => {
      await using s = await createCrashHarness({ dedupes, args: ["--faults", "7"] });
      const random = seededRandom(7);
      const many = Array.from({ length: 60 }, (_, n) => n + 1);
      const senders = await Promise.all(Array.from({ length: 4 }, () => s.startSender()));
      await s.accept(many);
      for (let round = 0; round < 8; round++) {
        await sleep(random() * 400); // A random moment for the kill, not a wait for a state.
        const index = Math.floor(random() * senders.length);
        await kill(senders[index] as ChildProcess);
        senders[index] = await s.startSender();
        if (round === 3) {
          await s.simulator.kill();
          await s.simulator.start();
        }
      }
      await until("all have ended", s.areAllEnded, longWait);
      await s.expectEachTakenOnce(many.length);
      expect((await s.states()).every(({ status }) => status === "succeeded")).toBe(true);
    },
    long,
  );

  test.concurrent.each([
    ["before it sends", "recorded"],
    ["while it sends", "sending"],
  ] as const)(
    `${kind}: a sender frozen %s, whose order another resolved, changes nothing`,
    async (_, step) => {
      await using s = await createCrashHarness({ dedupes });
      const zombie = await s.startSender({ step, signal: "SIGSTOP" });
      await s.accept([1]);
      await until("it is frozen", () => isStopped(zombie), longWait);
      const [claimed] = await s.rows(`select in_doubt_since, last_sent_at from outbox_orders`);
      expect(claimed.in_doubt_since).not.toBeNull();
      const sentAt: number = claimed.last_sent_at.getTime();
      const other = await s.startSender();
      await until("another has resolved it", s.areAllEnded, longWait);
      await until("the window is over", () => Date.now() > sentAt + windowMs, longWait);
      const [before] = await s.rows(`select * from outbox_orders`);
      await s.accept([2]);
      await until("the other has done the next", s.areAllEnded, longWait);
      await kill(other);
      zombie.kill("SIGCONT");
      // It is awake once it sends orders again, alone, and once the broker has refused the request that it had begun.
      if (step === "sending") {
        const request = () =>
          s.simulator.entries().find((entry) => entry.kind === "request" && entry.timestamp === sentAt);
        await until("its request has come", () => request() !== undefined, longWait);
        expect(request()).toMatchObject({ refused: "STALE" });
      }
      await s.accept([3, 4, 5, 6]);
      await until("all have ended", s.areAllEnded, longWait);
      expect((await s.rows(`select * from outbox_orders where id = 1`))[0]).toEqual(before);
      await s.expectEachTakenOnce(6);
    },
    long,
  );
}

test(
  "orders sent while the broker is down are taken once when it is back",
  async () => {
    await using s = await createCrashHarness({ dedupes: false });
    await s.simulator.kill();
    // No sender dies here, and none may claim an order of one that only stalled.
    await s.startSender({ leaseMs: 120_000 });
    await s.accept(orders);
    const areAttempted = async () =>
      (await s.states()).every(({ last_error_code }) => last_error_code === "BROKER_DOWN");
    await until("all are attempted", areAttempted, longWait);
    expect((await s.states()).some(({ status }) => status === "unknown")).toBe(false);
    await s.simulator.start();
    await until("all have ended", s.areAllEnded, longWait);
    await s.expectEachTakenOnce(orders.length);
  },
  long,
);

test.concurrent.each(["filled", "fills-recorded"] as const)(
  "a sender that is killed when fills are %s: every fill is recorded once, with one event",
  { timeout: long },
  async (step) => {
    await using c = await createCrashHarness({ dedupes: true });
    await c.accept([1], "USDJPY", { price: "100", timeInForce: "GTC" });
    const child = await c.startSender({ step });
    await until("the order rests at the broker", () => c.simulator.taken().length === 1, longWait);
    const [order] = c.simulator.taken();
    for (const [n, qty] of ["0.5", "0.25", "0.75"].entries())
      await c.simulator.fill(order?.client_order_id ?? "", { tradeId: `t-${n}`, qty, price: "100" });
    await until("the sender is dead", () => child.signalCode === "SIGKILL", longWait);
    await c.startSender();
    await until(
      "the order is filled",
      async () => (await c.rows(`select from outbox_orders where execution = 'filled'`)).length === 1,
      longWait,
    );
    const trades = ["t-0", "t-1", "t-2"];
    expect(await c.rows(`select trade_id from order_fills order by version`)).toEqual(
      trades.map((trade_id) => ({ trade_id })),
    );
    const events = await c.rows(`select payload ->> 'trade_id' as trade_id, version::int from outbox_events
                                  where event_type = 'OrderFilled' order by position`);
    expect(events).toEqual(trades.map((trade_id, n) => ({ trade_id, version: 4 + n })));
  },
);
