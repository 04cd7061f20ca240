import fc from "fast-check";
import type { AsyncMessage } from "rabbitmq-client";
import { expect, test } from "vitest";
import { again, deliveryOf, type Outgoing, outgoing, returnsOf, waitOf } from "./message.ts";
import { thing } from "./testing.ts";

/** What the broker hands out after it took this in. */
function arrived({ properties, body }: Outgoing, more: Partial<AsyncMessage> = {}): AsyncMessage {
  const { headers, ...rest } = properties;
  const broker = { consumerTag: "c", deliveryTag: 1, redelivered: false };
  return { ...rest, ...broker, body, ...more, headers: { ...headers, ...more.headers } };
}

const text = fc.string({ unit: "binary", maxLength: 50 }).filter((value) => value.isWellFormed());

test("an event comes out as it went in, whatever it holds, also after any number of retries", () => {
  const events = fc.record({
    eventId: fc.uuid(),
    eventType: text,
    aggregateKey: text,
    headers: fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9._-]{0,20}$/), text, { noNullPrototype: true }),
    payload: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
  });
  fc.assert(
    fc.property(events, fc.nat({ max: 3 }), (about, retries) => {
      const event = thing(about);
      let message = arrived(outgoing(event, "todoke"));
      for (let n = 0; n < retries; n++) {
        const death = { "x-death": [{ count: 1 }], "x-first-death-queue": "q", "x-last-death-reason": "expired" };
        message = arrived(again(message, { queue: "q", waitMs: 0 }), { headers: { ...death, "x-delivery-count": 0 } });
      }
      expect(deliveryOf(message)).toEqual({ ...event, redelivered: retries > 0 });
    }),
  );
});

test("names that the broker or the bus uses for itself do not travel as an event's headers", () => {
  const headers = {
    event_type: "forged",
    "x-todoke-subject": "elsewhere",
    "x-death": "no",
    BCC: "all",
    "x-mine": "yes",
  };
  const delivery = deliveryOf(arrived(outgoing(thing({ headers }), "todoke")));
  expect(delivery).toMatchObject({
    eventType: "ThingHappened",
    subject: "things.events",
    headers: { "x-mine": "yes" },
  });
});

test("what is left of a wait, and how often a message came back, are read from the message", () => {
  const message = arrived(outgoing(thing(), "todoke"), { headers: { "x-delivery-count": 7 } });
  expect([returnsOf(message), waitOf(message)]).toEqual([7, 0]);
  const later = arrived(again(message, { queue: "q", waitMs: 1_200 }));
  expect([returnsOf(later), waitOf(later)]).toEqual([0, 1_200]);
  expect([later.exchange, later.routingKey]).toEqual(["", "q"]);
});

test.each([
  ["a subject of 256 bytes", { subject: `s${"é".repeat(128)}` }, "is longer than 255 bytes"],
  ["a header whose name has 256 bytes", { headers: { ["h".repeat(256)]: "" } }, "is longer than 255 bytes"],
  ["headers that fill a frame", { headers: { a: "1".repeat(4_000), b: "2".repeat(4_000) } }, "7000 is the most"],
  ["half a surrogate pair", { aggregateKey: "\ud83d" }, "no Unicode"],
  ["no subject", { subject: "" }, "empty"],
])("an event with %s can never be sent, and says so", (_, about, why) => {
  expect(outgoing(thing(about), "todoke").impossible).toContain(why);
});
