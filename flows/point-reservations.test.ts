/** The three scenarios of seed 003 on every bus: granted at its time; the same message again and again; a worker that was down. */
import { randomBytes } from "node:crypto";
import { openNatsBus } from "@todoke/bus-nats";
import { openPostgresBus } from "@todoke/bus-postgres";
import { openRabbitmqBus } from "@todoke/bus-rabbitmq";
import { consumers, encodeOutboxEvent } from "@todoke/contracts";
import type { EventBus } from "@todoke/kernel/bus";
import { keepSubscribed, openInbox } from "@todoke/kernel/inbox";
import { relay } from "@todoke/kernel/outbox";
import { until } from "@todoke/kernel/testing";
import { onReservationDue } from "@todoke/points/reservations";
import { setup } from "@todoke/points/reservations/testing";
import { expect, test } from "vitest";
import { type BusKind, busKinds, serverOf } from "./buses.ts";

function openBus(kind: BusKind, url: string, place: string): Promise<EventBus> {
  switch (kind) {
    case "postgres":
      return openPostgresBus({ url, schema: place });
    case "nats":
      return openNatsBus({ url, name: "flows", place });
    case "rabbitmq":
      return openRabbitmqBus({ url, name: "flows", place, consumers });
  }
}

const onError = () => {};

/** The service but for its API: a relay and a scheduler that run, and workers that are started when wanted. */
async function stage(kind: BusKind) {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await setup());
  const bus = parts.use(await openBus(kind, serverOf(kind, t.url), `points${randomBytes(4).toString("hex")}`));
  const carrying = parts.use(relay({ db: t.open(), bus, encode: encodeOutboxEvent, settings: { pollMs: 20 } }));
  carrying.start();
  parts.use(t.scheduler({ everyMs: 50, onError, onSent: carrying.wake })).start();
  let handled = 0;
  return {
    ...t,
    bus,
    handled: () => handled,
    /** A worker of its own, until it is disposed of. */
    startWorker() {
      const inbox = openInbox({ ...onReservationDue({ wake: () => {} }), db: t.open() });
      return keepSubscribed({
        bus,
        consumer: "points",
        subjects: consumers.points,
        async handle(deliveries, stopping) {
          const outcomes = await inbox.handle(deliveries, stopping);
          handled += outcomes.filter(({ kind }) => kind === "done").length;
          return outcomes;
        },
        onError,
      });
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const isDone = (t: { statuses(): Promise<Record<string, number>> }, many: number) => async () =>
  (await t.statuses()).DONE === many;
const withinMs = 20_000;

test.each(busKinds)("on %s: points are granted when their time has come, and not before", async (kind) => {
  await using t = await stage(kind);
  await using _ = t.startWorker();
  const [{ at }] = await t.rows(
    `select to_char((now() + interval '700 ms') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.USZ') as at`,
  );
  await t.reserve({ at });
  expect(await t.balanceOf("u_1")).toBe(0n);
  await until("they are granted", isDone(t, 1), { withinMs });
  expect(await t.balanceOf("u_1")).toBe(100n);
  const [{ early }] = await t.rows(
    `select x.created_at < r.execute_at - interval '1 ms' as early
       from point_reservations r join point_transactions x on x.id = r.transaction_id`,
  );
  expect(early).toBe(false); // The ledger keeps milliseconds, a reservation microseconds.
});

test.each(busKinds)("on %s: the same message ten times is one grant", async (kind) => {
  await using t = await stage(kind);
  await using _ = t.startWorker();
  await t.reserve();
  await until("it is granted", isDone(t, 1), { withinMs });
  const [event] = await t.dueEvents();
  if (!event) throw new Error("nothing was due");
  // A bus may know a message again by its id; under ids of their own all ten arrive, as if it did not.
  const copies = Array.from({ length: 10 }, (_, n) => ({
    ...event,
    eventId: event.eventId.slice(0, -1) + n.toString(16),
  }));
  const before = t.handled();
  for (const copy of copies) await t.bus.publish([copy]);
  await until("all have been handled", () => t.handled() >= before + copies.length - 1, { withinMs });
  expect(await t.balanceOf("u_1")).toBe(100n);
  expect(await t.statuses()).toEqual({ DONE: 1 });
});

test.each(busKinds)("on %s: what was reserved while the worker was down is granted when it is back", async (kind) => {
  await using t = await stage(kind);
  {
    await using _ = t.startWorker();
    await t.reserve({ user: "before" });
    await until("the worker works", isDone(t, 1), { withinMs });
  }
  for (let n = 0; n < 20; n++) await t.reserve({ user: `u_${n % 5}` });
  await until("all wait for it", async () => (await t.statuses()).PROCESSING === 20, { withinMs });
  await using _ = t.startWorker();
  await until("all are granted", isDone(t, 21), { withinMs });
  for (let n = 0; n < 5; n++) expect(await t.balanceOf(`u_${n}`)).toBe(400n);
});
