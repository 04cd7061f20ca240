/** The recording broker under kill -9 and SIGSTOP: whatever dies, every order is taken once. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { programOf, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { seeded } from "../brokers/faults.ts";
import { startSimulator } from "../simulator/testing.ts";
import type { SenderProcessOptions, Step } from "./sender-process.ts";
import { setup } from "./testing.ts";

const windowMs = 4_000;
/** On a busy machine the broker's answers come too late again and again, and each time it is asked later. */
const longMs = { withinMs: 240_000 };
const long = 600_000;

async function stage({ dedupes, args = [] }: { readonly dedupes: boolean; readonly args?: readonly string[] }) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await setup({ adapter: "http" }));
  const window = ["--window-ms", String(windowMs), "--slow-ms", "1500"];
  const simulator = parts.use(await startSimulator(...window, ...(dedupes ? [] : ["--no-dedupe"]), ...args));

  async function startSender(
    more: Pick<SenderProcessOptions, "step" | "signal" | "leaseMs"> = {},
  ): Promise<ChildProcess> {
    const { url, secret } = simulator;
    const about = { databaseUrl: t.url, brokerUrl: url.href, secret, dedupes, windowMs, ...more };
    const program = programOf(new URL("./sender-process.ts", import.meta.url));
    const child = spawn(process.execPath, [program, JSON.stringify(about)], { stdio: ["ignore", "pipe", "ignore"] });
    parts.defer(() => kill(child));
    await once(child.stdout as NodeJS.ReadableStream, "data");
    return child;
  }

  return {
    ...t,
    simulator,
    startSender,
    areAllEnded: async () => (await t.states()).every(({ status }) => status === "succeeded" || status === "aborted"),
    /** The promise itself: what was taken is what succeeded, each once. */
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

/** Whether it is frozen. */
function isStopped({ pid }: ChildProcess): boolean {
  return spawnSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" }).stdout.startsWith("T");
}

const orders = [1, 2, 3, 4, 5, 6];
const steps: readonly (readonly [string, Step])[] = [
  ["has claimed", "claimed"],
  ["has written down that bytes may leave", "asked"],
  ["is about to send", "sending"],
  ["has the answer", "answered"],
  ["has settled", "settled"],
];

for (const dedupes of [true, false]) {
  const kind = dedupes ? "a broker that dedupes" : "a broker that does not dedupe";

  test.concurrent.each(steps)(
    `${kind}: a sender killed when it %s leaves every order to be taken once`,
    async (_, step) => {
      await using s = await stage({ dedupes });
      const dying = await s.startSender({ step });
      const died = once(dying, "exit");
      await s.accept(orders);
      await died;
      await s.startSender();
      await until("all have ended", s.areAllEnded, longMs);
      await s.expectEachTakenOnce(orders.length);
      expect((await s.states()).map(({ status }) => status)).toEqual(orders.map(() => "succeeded"));
    },
    long,
  );

  test.concurrent(
    `${kind}: a sender killed while the broker has its bytes, and has not answered`,
    async () => {
      await using s = await stage({ dedupes });
      await s.simulator.fault("slow", "late", "slow", "late");
      const dying = await s.startSender();
      await s.accept(orders);
      await until("bytes are out", () => s.simulator.entries().some((entry) => entry.kind === "taken"), longMs);
      await kill(dying);
      await s.startSender();
      await until("all have ended", s.areAllEnded, longMs);
      await s.expectEachTakenOnce(orders.length);
    },
    long,
  );

  test(
    `${kind}: four senders, killed again and again, at a broker that fails in every way and is killed too`,
    async () => {
      await using s = await stage({ dedupes, args: ["--faults", "7"] });
      const random = seeded(7);
      const many = Array.from({ length: 60 }, (_, n) => n + 1);
      const senders = await Promise.all(Array.from({ length: 4 }, () => s.startSender()));
      await s.accept(many);
      for (let round = 0; round < 8; round++) {
        await sleep(random() * 400); // Kills at moments that nobody chose; what is waited for comes below.
        const place = Math.floor(random() * senders.length);
        await kill(senders[place] as ChildProcess);
        senders[place] = await s.startSender();
        if (round === 3) {
          await s.simulator.kill();
          await s.simulator.start();
        }
      }
      await until("all have ended", s.areAllEnded, longMs);
      await s.expectEachTakenOnce(many.length);
      expect((await s.states()).every(({ status }) => status === "succeeded")).toBe(true);
    },
    long,
  );

  test.concurrent.each([
    ["before it sends", "asked"],
    ["with its request out of its hands", "sending"],
  ] as const)(
    `${kind}: a sender frozen %s, whose order another has resolved, sends nothing that counts and writes nothing`,
    async (_, step) => {
      await using s = await stage({ dedupes });
      const zombie = await s.startSender({ step, signal: "SIGSTOP" });
      await s.accept([1]);
      await until("it is frozen", () => isStopped(zombie), longMs);
      const [held] = await s.rows(`select in_doubt_since, last_sent_at from outbox_orders`);
      expect(held.in_doubt_since).not.toBeNull();
      const stampedAt: number = held.last_sent_at.getTime();
      const other = await s.startSender();
      await until("another has resolved it", s.areAllEnded, longMs);
      // Longer than the window after the frozen one's timestamp, whoever was quicker.
      await until("the window is over", () => Date.now() > stampedAt + windowMs, longMs);
      const [before] = await s.rows(`select * from outbox_orders`);
      await s.accept([2]);
      await until("the other has done the next", s.areAllEnded, longMs);
      await kill(other);
      zombie.kill("SIGCONT");
      // That it is awake again shows by its working again, alone; and by the request that it had begun, which is turned away.
      if (step === "sending") {
        const its = () =>
          s.simulator.entries().find((entry) => entry.kind === "request" && entry.timestamp === stampedAt);
        await until("its request has come", () => its() !== undefined, longMs);
        expect(its()).toMatchObject({ refused: "STALE" });
      }
      await s.accept([3, 4, 5, 6]);
      await until("all have ended", s.areAllEnded, longMs);
      expect((await s.rows(`select * from outbox_orders where id = 1`))[0]).toEqual(before);
      await s.expectEachTakenOnce(6);
    },
    long,
  );
}

test(
  "orders that are sent while the broker is away wait, and are taken once when it is back",
  async () => {
    await using s = await stage({ dedupes: false });
    await s.simulator.kill();
    // Nobody dies here, and nobody is to take an order over from one that only stood still.
    await s.startSender({ leaseMs: 120_000 });
    await s.accept(orders);
    const tried = async () => (await s.states()).every(({ last_error_code }) => last_error_code === "BROKER_DOWN");
    await until("all have been tried", tried, longMs);
    expect((await s.states()).some(({ status }) => status === "unknown")).toBe(false);
    await s.simulator.start();
    await until("all have ended", s.areAllEnded, longMs);
    await s.expectEachTakenOnce(orders.length);
  },
  long,
);
