import { BusUnavailable, type EventBus, MemoryBroker, memoryBus } from "@todoke/kernel/bus";
import { transaction } from "@todoke/kernel/db";
import type { NewEvent } from "@todoke/kernel/outbox";
import { fixedId, testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { busVariable, findBus } from "./buses.ts";
import { service } from "./service.ts";

test("a subject may have a bus of its own, else that of its service's events, else the shared one", () => {
  expect(busVariable("points.reservations")).toBe("POINTS_RESERVATION_BUS_URL");
  expect(busVariable("entitlement.events")).toBe("ENTITLEMENT_EVENT_BUS_URL");
  const env: Record<string, string> = {};
  const variable = () => findBus("points.reservations", env)?.variable;
  for (const name of ["DATABASE_URL", "EVENT_BUS_URL", "POINTS_EVENT_BUS_URL", "POINTS_RESERVATION_BUS_URL"]) {
    env[name] = "nats://127.0.0.1";
    expect(variable()).toBe(name);
  }
  expect(findBus("account.events", env)?.variable).toBe("EVENT_BUS_URL");
  expect(findBus("account.events", {})).toBeUndefined();
});

const head = (n: number, eventType: string) => ({
  event_id: fixedId(n),
  event_type: eventType,
  occurred_at: "2026-01-08T07:00:00Z",
  version: "1",
});

const granted = (n: number): NewEvent => ({
  eventId: fixedId(n),
  eventType: "AccountCreated",
  subject: "account.events",
  aggregateKey: `u_${n}`,
  version: 1,
  payload: { ...head(n, "AccountCreated"), user_id: `u_${n}`, status: "ACTIVE" },
});

const due = (n: number): NewEvent => ({
  eventId: fixedId(n),
  eventType: "PointReservationDue",
  subject: "points.reservations",
  aggregateKey: `r_${n}`,
  version: 1,
  payload: {
    ...head(n, "PointReservationDue"),
    user_id: `u_${n}`,
    reservation_id: fixedId(n),
    point_amount: "1",
    execute_at: "2026-01-08T07:00:00Z",
  },
});

/** A service that emits and consumes on two buses. */
async function setup() {
  const t = await testDatabase();
  const seen: string[] = [];
  let emit = async (..._events: NewEvent[]) => {};
  const sample = service({
    name: "sample",
    port: 8099,
    migrations: new URL("./testing/", import.meta.url),
    settings: () => ({}),
    emits: ["account.events", "points.reservations"],
    consumes: { subjects: ["account.events", "points.reservations"] },
    async build({ db, outbox }) {
      emit = (...events) => transaction(db, (tx) => outbox.append(tx, ...events));
      return {
        decode: ({ aggregateKey }) => aggregateKey,
        effect: async (_tx, keys) => void seen.push(...keys),
      };
    },
  });
  const env = {
    DATABASE_URL: t.url,
    SAMPLE_PORT: "0",
    LOG_LEVEL: "silent",
    EVENT_BUS_URL: "nats://events",
    POINTS_RESERVATION_BUS_URL: "amqp://jobs",
  };
  await sample.migrate(env, { dryRun: false });
  const brokers = { "nats://events": new MemoryBroker(), "amqp://jobs": new MemoryBroker() };
  const opened: object[] = [];
  let downUrl: string | undefined;
  /** Publishing to one of them can be made to fail. */
  const openBus = async (_: string, { url, emits }: { url: string; emits: readonly string[] }): Promise<EventBus> => {
    opened.push({ url, emits });
    const bus = memoryBus(brokers[url as keyof typeof brokers]);
    const publish: EventBus["publish"] = (events) =>
      url === downUrl ? Promise.reject(new BusUnavailable("down")) : bus.publish(events);
    return { ...bus, publish };
  };
  const running = await sample.start(env, { openBus });
  return {
    seen,
    opened,
    brokers,
    emit: (...events: NewEvent[]) => emit(...events),
    setDown(url: keyof typeof brokers | undefined) {
      downUrl = url;
    },
    isReady: async () => (await fetch(`${running.url}/readyz`)).ok,
    metrics: async () => (await fetch(`${running.opsUrl}/metrics`)).text(),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("a service with two buses publishes and consumes each subject at its bus", async () => {
  await using t = await setup();
  expect(t.opened).toEqual([
    { url: "nats://events", emits: ["account.events"] },
    { url: "amqp://jobs", emits: ["points.reservations"] },
  ]);
  await t.emit(granted(1), due(2), granted(3), due(4));
  await until("all took effect", () => t.seen.length === 4);
  expect(t.seen.toSorted()).toEqual(["r_2", "r_4", "u_1", "u_3"]);
  const subjects = Object.values(t.brokers).map(({ events }) => events.map(({ subject }) => subject));
  expect(subjects).toEqual([
    ["account.events", "account.events"],
    ["points.reservations", "points.reservations"],
  ]);
});

test.each([
  { down: "amqp://jobs", relay: "sample relay (points.reservations)", delivered: "u_6", late: "r_5" },
  { down: "nats://events", relay: "sample relay", delivered: "r_5", late: "u_6" },
] as const)("while $down is unavailable the other bus delivers, and metrics name the relay", async (bus) => {
  await using t = await setup();
  /** Failed publishes of each relay. Metrics are those of the process, so another test may have counted before. */
  const failures = async () => {
    const lines = (await t.metrics()).matchAll(/todoke_outbox_unavailable_total\{worker="(.*?)"\} (\d+)/g);
    return new Map([...lines].map(([, worker = "", count]) => [worker, Number(count)]));
  };
  const before = await failures();
  const failed = async () =>
    [...(await failures())].flatMap(([worker, count]) => (count > (before.get(worker) ?? 0) ? [worker] : []));
  t.setDown(bus.down);
  await t.emit(due(5), granted(6));
  await until("the event of the other bus took effect", () => t.seen.length === 1);
  expect(t.seen).toEqual([bus.delivered]);
  expect(await t.isReady()).toBe(true);
  await until("the failed publish is counted", async () => (await failed()).length > 0);
  expect(await failed()).toEqual([bus.relay]);
  t.setDown(undefined);
  await until("the other event took effect", () => t.seen.length === 2);
  expect(t.seen).toEqual([bus.delivered, bus.late]);
  const stored = Object.values(t.brokers).map(({ events }) => events.map(({ subject }) => subject));
  expect(stored).toEqual([["account.events"], ["points.reservations"]]);
});
