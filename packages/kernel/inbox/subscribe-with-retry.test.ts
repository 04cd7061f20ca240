import { expect, test } from "vitest";
import { BusUnavailable, MemoryBroker, memoryBus } from "../bus/index.ts";
import { fixedId, until } from "../testing/index.ts";
import { done } from "../worker/index.ts";
import { subscribeWithRetry } from "./subscribe-with-retry.ts";

const backoff = { baseMs: 1, capMs: 2 };

test("it retries until the bus is available and then receives events", async () => {
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
  const received: string[] = [];
  const errors: unknown[] = [];
  let failuresLeft = 3;
  await using _ = subscribeWithRetry({
    bus: {
      subscribe: async (subscription) => {
        if (failuresLeft-- > 0) throw new BusUnavailable("not yet");
        return bus.subscribe(subscription);
      },
    },
    consumer: "mailer",
    subjects: [event.subject],
    async handle(deliveries) {
      received.push(...deliveries.map(({ eventId }) => eventId));
      return deliveries.map(() => done);
    },
    backoff,
    onError: (error) => errors.push(error),
  });
  await until("it has subscribed", () => failuresLeft < 0);
  await bus.publish([event]);
  await until("the event is received", () => received.includes(event.eventId));
  expect(errors).toHaveLength(3);
});

test("it can be stopped while the bus is unavailable, and ends a late subscription", async () => {
  const errors: unknown[] = [];
  const options = { consumer: "mailer", subjects: [], handle: async () => [], backoff };
  const unavailable = subscribeWithRetry({
    ...options,
    bus: { subscribe: () => Promise.reject(new BusUnavailable("no broker")) },
    onError: (error) => errors.push(error),
  });
  await until("it has tried", () => errors.length > 1);
  await unavailable[Symbol.asyncDispose]();

  const subscribed = Promise.withResolvers<AsyncDisposable>();
  const late = subscribeWithRetry({ ...options, bus: { subscribe: () => subscribed.promise }, onError: () => {} });
  const stopped = late[Symbol.asyncDispose]();
  let ended = false;
  subscribed.resolve({
    async [Symbol.asyncDispose]() {
      ended = true;
    },
  });
  await stopped;
  expect(ended).toBe(true);
});
