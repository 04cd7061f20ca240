import { randomUUID } from "node:crypto";
import type { EventBus } from "@todoke/kernel/bus";
import { testDatabase, until } from "@todoke/kernel/testing";
import { expect, test } from "vitest";
import { openBus } from "./bus.ts";
import { startServices } from "./run-services.ts";
import type { Service } from "./services.ts";
import { readBusKeepMs } from "./settings.ts";

test("the bus keeps messages for EVENT_BUS_KEEP_DAYS and logs to the service that opened it", async () => {
  await using t = await testDatabase({ sets: [], schema: "todoke_bus" });
  const event = (aggregateKey: string) => ({
    eventId: randomUUID(),
    eventType: "T",
    subject: "s.events",
    aggregateKey,
    occurredAt: "",
    headers: {},
    payload: new Uint8Array(),
  });
  {
    await using bus = await openBus(t.url, "test");
    for (const age of ["2", "4"]) await bus.publish([event(age)]);
    await t.db.query(`update bus_messages set published_at = now() - aggregate_key::int * interval '1 day'`);
  }
  const infos: string[] = [];
  let bus: EventBus | undefined;
  const service: Service = {
    configErrors: () => [],
    migrate: async () => [],
    async start(_, outside) {
      bus = await outside.openBus("counter", {
        url: t.url,
        emits: [],
        onError() {},
        onInfo: (message) => infos.push(message),
      });
      const { [Symbol.asyncDispose]: close } = bus;
      return { url: "", stopped: new Promise(() => {}), [Symbol.asyncDispose]: close };
    },
  };
  const entry = { name: "counter", port: 1, summary: "", load: async () => service };
  const stop = { requested: new Promise<void>(() => {}), throwIfRequested() {} };
  const env = { DATABASE_URL: t.url, EVENT_BUS_KEEP_DAYS: "3" };
  await using _ = await startServices([{ entry, service }], { env, stop });
  const kept = async () => (await t.db.query(`select aggregate_key as age from bus_messages`)).rows;
  await until("the older message is deleted", async () => (await kept()).length < 2);
  expect(await kept()).toEqual([{ age: "2" }]);

  await t.db.query(
    `insert into bus_messages (event_id, event_type, subject, aggregate_key, occurred_at, headers, payload)
     select gen_random_uuid(), 'T', 's.events', n, '', '{}', '' from generate_series(1, 2000) n`,
  );
  await using _late = await bus?.subscribe({ consumer: "late", subjects: ["s.events"], handle: async () => [] });
  await until("the log says that it has joined", () => infos.some((info) => info.startsWith("late has joined")));
});

test("EVENT_BUS_KEEP_DAYS is a whole number of days, 7 by default", () => {
  const errors: string[] = [];
  expect(readBusKeepMs({}, errors)).toBe(7 * 86_400_000);
  expect(readBusKeepMs({ EVENT_BUS_KEEP_DAYS: "30" }, errors)).toBe(30 * 86_400_000);
  expect(errors).toEqual([]);
  readBusKeepMs({ EVENT_BUS_KEEP_DAYS: "0" }, errors);
  expect(errors).toEqual([`EVENT_BUS_KEEP_DAYS is "0" and should be a whole number from 1 to 3650`]);
});
