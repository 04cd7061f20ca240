import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { deliveryOf, headersOf } from "./message.ts";
import { thing } from "./testing.ts";

const arrival = { subject: "things.events", deliveries: 1, position: "THINGS/7" };
const arrived = (headers: MsgHdrs | undefined) => ({ headers, data: new Uint8Array() }) as unknown as Msg;
const line = (headers: MsgHdrs, name: string) => headers.get(name);

test("whatever an event's fields and headers say, they say it on the other side", () => {
  const name = fc
    .stringMatching(/^[!-9;-~]{1,20}$/)
    .filter((n) => !/^(Nats-Msg-Id|event_type|aggregate_key|occurred_at)$/.test(n));
  const value = fc.string({ unit: "binary" });
  const envelope = fc.record({
    eventType: value,
    aggregateKey: value,
    occurredAt: value,
    headers: fc.dictionary(name, value),
  });
  fc.assert(
    fc.property(envelope, (fields) => {
      const { eventType, aggregateKey, occurredAt, headers } = deliveryOf(arrived(headersOf(thing(fields))), arrival);
      expect({ eventType, aggregateKey, occurredAt, headers: { ...headers } }).toEqual({
        ...fields,
        headers: { ...fields.headers },
      });
    }),
  );
});

test("what needs no help travels as it is, for anybody to read", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const headers = headersOf(thing({ aggregateKey: 'user/1 "main" account', headers: { traceparent } }));
  expect(line(headers, "aggregate_key")).toBe('user/1 "main" account');
  expect(line(headers, "traceparent")).toBe(traceparent);
  expect(line(headersOf(thing({ aggregateKey: "100% é" })), "aggregate_key")).toBe("100%25 %C3%A9");
});

test("a header cannot pass for a field of the envelope", () => {
  const headers = headersOf(thing({ eventType: "Real", headers: { event_type: "Forged" } }));
  expect(deliveryOf(arrived(headers), arrival)).toMatchObject({ eventType: "Real", headers: {} });
});

test("half a surrogate pair and a header name with a colon are refused", () => {
  expect(() => headersOf(thing({ aggregateKey: "\ud800" }))).toThrow(URIError);
  expect(() => headersOf(thing({ headers: { "a:b": "c" } }))).toThrow("not a valid character in a header name");
});

test("a message that somebody else published is named after its place in the stream", () => {
  expect(deliveryOf(arrived(undefined), arrival)).toMatchObject({ eventId: "THINGS/7", eventType: "", headers: {} });
});
