import fc from "fast-check";
import type { AsyncMessage } from "rabbitmq-client";
import { expect, test } from "vitest";
import { countRequeues, type OutgoingMessage, readWaitMs, toDelivery, toOutgoing, toRequeued } from "./message.ts";
import { sampleEvent } from "./testing.ts";

/** The message as the broker delivers it. */
function toReceived({ properties, body }: OutgoingMessage, more: Partial<AsyncMessage> = {}): AsyncMessage {
  const { headers, ...rest } = properties;
  const broker = { consumerTag: "c", deliveryTag: 1, redelivered: false };
  return { ...rest, ...broker, body, ...more, headers: { ...headers, ...more.headers } };
}

const text = fc.string({ unit: "binary", maxLength: 50 }).filter((value) => value.isWellFormed());

test("an event survives the way through AMQP unchanged, also after retries", () => {
  const events = fc.record({
    eventId: fc.uuid(),
    eventType: text,
    aggregateKey: text,
    headers: fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9._-]{0,20}$/), text, { noNullPrototype: true }),
    payload: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
  });
  fc.assert(
    fc.property(events, fc.nat({ max: 3 }), (fields, retries) => {
      const event = sampleEvent(fields);
      let message = toReceived(toOutgoing(event, "todoke"));
      for (let n = 0; n < retries; n++) {
        const death = { "x-death": [{ count: 1 }], "x-first-death-queue": "q", "x-last-death-reason": "expired" };
        message = toReceived(toRequeued(message, { queue: "q", waitMs: 0 }), {
          headers: { ...death, "x-delivery-count": 0 },
        });
      }
      expect(toDelivery(message)).toEqual({ ...event, redelivered: retries > 0 });
    }),
  );
});

test("headers of an event with names that the broker or the bus uses are dropped", () => {
  const headers = {
    event_type: "forged",
    "x-todoke-subject": "elsewhere",
    "x-death": "no",
    BCC: "all",
    "x-mine": "yes",
  };
  const delivery = toDelivery(toReceived(toOutgoing(sampleEvent({ headers }), "todoke")));
  expect(delivery).toMatchObject({
    eventType: "ThingHappened",
    subject: "things.events",
    headers: { "x-mine": "yes" },
  });
});

test("the remaining delay and the requeue count are read from the message", () => {
  const message = toReceived(toOutgoing(sampleEvent(), "todoke"), { headers: { "x-delivery-count": 7 } });
  expect([countRequeues(message), readWaitMs(message)]).toEqual([7, 0]);
  const later = toReceived(toRequeued(message, { queue: "q", waitMs: 1_200 }));
  expect([countRequeues(later), readWaitMs(later)]).toEqual([0, 1_200]);
  expect([later.exchange, later.routingKey]).toEqual(["", "q"]);
});

test.each([
  ["a subject of 256 bytes", { subject: `s${"é".repeat(128)}` }, "is longer than 255 bytes"],
  ["a header whose name has 256 bytes", { headers: { ["h".repeat(256)]: "" } }, "is longer than 255 bytes"],
  ["headers that fill a frame", { headers: { a: "1".repeat(4_000), b: "2".repeat(4_000) } }, "the limit is 7000"],
  ["a lone surrogate", { aggregateKey: "\ud83d" }, "a lone surrogate"],
  ["no subject", { subject: "" }, "empty"],
])("an event with %s is unsendable, with the reason", (_, fields, reason) => {
  expect(toOutgoing(sampleEvent(fields), "todoke").unsendable).toContain(reason);
});
