import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { toDelivery, toHeaders } from "./message.ts";
import { sampleEvent } from "./testing.ts";

const received = { subject: "things.events", deliveries: 1, position: "THINGS/7" };
const toMessage = (headers: MsgHdrs | undefined) => ({ headers, data: new Uint8Array() }) as unknown as Msg;

test("all fields and headers of an event survive the way through a NATS message", () => {
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
      const { eventType, aggregateKey, occurredAt, headers } = toDelivery(
        toMessage(toHeaders(sampleEvent(fields))),
        received,
      );
      expect({ eventType, aggregateKey, occurredAt, headers: { ...headers } }).toEqual({
        ...fields,
        headers: { ...fields.headers },
      });
    }),
  );
});

test("plain ASCII values are not encoded", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const headers = toHeaders(sampleEvent({ aggregateKey: 'user/1 "main" account', headers: { traceparent } }));
  expect(headers.get("aggregate_key")).toBe('user/1 "main" account');
  expect(headers.get("traceparent")).toBe(traceparent);
  expect(toHeaders(sampleEvent({ aggregateKey: "100% é" })).get("aggregate_key")).toBe("100%25 %C3%A9");
});

test("a header cannot replace a field of the envelope", () => {
  const headers = toHeaders(sampleEvent({ eventType: "Real", headers: { event_type: "Forged" } }));
  expect(toDelivery(toMessage(headers), received)).toMatchObject({ eventType: "Real", headers: {} });
});

test("a lone surrogate and a header name with a colon are rejected", () => {
  expect(() => toHeaders(sampleEvent({ aggregateKey: "\ud800" }))).toThrow(URIError);
  expect(() => toHeaders(sampleEvent({ headers: { "a:b": "c" } }))).toThrow("not a valid character in a header name");
});

test("a message without an id gets its position in the stream as event id", () => {
  expect(toDelivery(toMessage(undefined), received)).toMatchObject({ eventId: "THINGS/7", eventType: "", headers: {} });
});
