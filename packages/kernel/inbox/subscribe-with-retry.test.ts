import { expect, test } from "vitest";
import { BusUnavailable, MemoryBroker, memoryBus } from "../bus/index.ts";
import { fixedId, until } from "../testing/index.ts";
import { done } from "../worker/index.ts";
import { keepSubscribed } from "./subscribe-with-retry.ts";

const backoff = { baseMs: 1, capMs: 2 };

test("a bus that is away at the start is asked again until it is there, and then brings what was published", async () => {
  await using bus = memoryBus(new MemoryBroker());
  const event = {
    eventId: fixedId(1),
    eventType: "OrderPlaced",
    subject: "shop.events",
    aggregateKey: "order-1",
    occurredAt: "2026-01-08T07:10:00.123456Z",
    headers: {},
    payload: new Uint8Array(),
  };
  const heard: string[] = [];
  const errors: unknown[] = [];
  let away = 3;
  await using _ = keepSubscribed({
    bus: {
      subscribe: async (wish) => {
        if (away-- > 0) throw new BusUnavailable("not yet");
        return bus.subscribe(wish);
      },
    },
    consumer: "mailer",
    subjects: [event.subject],
    async handle(deliveries) {
      heard.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
    backoff,
    onError: (error) => errors.push(error),
  });
  await until("it has subscribed", () => away < 0);
  await bus.publish([event]);
  await until("the event has come", () => heard.includes(event.eventId));
  expect(errors).toHaveLength(3);
});

test("it can be stopped while the bus is away, and a subscription that comes too late is given up", async () => {
  const errors: unknown[] = [];
  const about = { consumer: "mailer", subjects: [], handle: async () => [], backoff };
  const away = keepSubscribed({
    ...about,
    bus: { subscribe: () => Promise.reject(new BusUnavailable("for ever")) },
    onError: (error) => errors.push(error),
  });
  await until("it has tried", () => errors.length > 1);
  await away[Symbol.asyncDispose]();

  const asked = Promise.withResolvers<AsyncDisposable>();
  const late = keepSubscribed({ ...about, bus: { subscribe: () => asked.promise }, onError: () => {} });
  const stopped = late[Symbol.asyncDispose]();
  let ended = false;
  asked.resolve({
    async [Symbol.asyncDispose]() {
      ended = true;
    },
  });
  await stopped;
  expect(ended).toBe(true);
});
