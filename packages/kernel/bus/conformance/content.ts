/** Events arrive unchanged, byte for byte. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import type { Envelope } from "../index.ts";
import { createHarness, publishAll, recordDeliveries, sampleEvent } from "./harness.ts";
import type { BusUnderTest } from "./index.ts";

export function contentConforms(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: a payload of any bytes up to 1 MB arrives unchanged`, async () => {
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const large = new Uint8Array(1_000_000).map((_, n) => (n * 31 + (n >> 8)) % 256);
    await assertIntact(bus, [
      sampleEvent({ payload: new Uint8Array(0) }),
      sampleEvent({ payload: Uint8Array.of(0) }),
      sampleEvent({ payload: Uint8Array.of(10) }),
      sampleEvent({ payload: every }),
      // A view of a larger buffer: only its own bytes may be sent.
      sampleEvent({ payload: every.subarray(13, 200) }),
      sampleEvent({ payload: large }),
    ]);
  });

  test(`${name}: headers arrive unchanged`, async () => {
    const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, n) => 32 + n));
    const headers = {
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tracestate: "vendor=a:b;c%20d,other=1",
      "x-empty": "",
      "x-spaces": "  two before,  two within, two after  ",
      "x-quotes": `"double" 'single' \\back\\ {"json": [1]}`,
      "x-header-like": "nats-msg-id: 7",
      "x.odd_name-1": "odd",
      "x-printable": printable,
      "x-long": "0123456789".repeat(400),
    };
    const { traceparent } = headers;
    const traces = [
      { traceparent },
      { traceparent, trace_id: traceparent.slice(3, 35) },
      { traceparent, trace_id: "f" },
    ];
    const all = [headers, {}, ...traces, { trace_id: "f" }];
    await assertIntact(
      bus,
      all.map((each) => sampleEvent({ headers: each })),
    );
  });

  test(`${name}: ID, type, aggregate, time and subject arrive unchanged`, async () => {
    const aggregateKeys = [
      `user/1 *.>#"é`,
      "日本語 🎮",
      " space before and after ",
      "two\nlines\tand a tab",
      "100% %25 %zz",
      "e\u0301 is not \u00e9",
      "k".repeat(1_000),
    ];
    const keyed = aggregateKeys.map((aggregateKey) => sampleEvent({ aggregateKey }));
    await assertIntact(bus, [
      ...keyed,
      sampleEvent({ eventId: "01890a5d-ac96-774b-bcce-b302099a8057", eventType: "points.granted.v2" }),
      sampleEvent({ occurredAt: "2026-02-03T04:05:06.123456Z" }),
      sampleEvent({ subject: "things.deeply.nested.events" }),
    ]);
  });

  test(`${name}: an event that is too large is dead, and the others of its call are stored`, async () => {
    await using harness = createHarness(bus);
    await harness.registerConsumer();
    const process = await harness.open();
    const consumer = await recordDeliveries(process);
    const [before, after, later] = [sampleEvent(), sampleEvent(), sampleEvent()];
    const tooLarge = sampleEvent({ payload: new Uint8Array(bus.payloadBytesMax + 1) });
    const outcomes = await process.publish([before, tooLarge, after]);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["done", "dead", "done"],
    );
    await publishAll(process, [later]);
    await until("the others arrive", () => [before, after, later].every((event) => consumer.countOf(event) === 1));
    assert.equal(consumer.countOf(tooLarge), 0);
  });
}

async function assertIntact(bus: BusUnderTest, events: readonly Envelope[]): Promise<void> {
  await using harness = createHarness(bus);
  const subjects = [...new Set(events.map((event) => event.subject))];
  await harness.registerConsumer("listener", subjects);
  const process = await harness.open();
  await publishAll(process, events);
  const consumer = await recordDeliveries(process, { subjects, handle: () => done });
  await until("all are received", () => consumer.received.length === events.length);
  for (const event of events) {
    const { redelivered: _, ...received } = consumer.received.find(({ eventId }) => eventId === event.eventId) ?? {};
    assert.deepEqual(comparable(received), comparable(event));
  }
}

/** A Buffer and a Uint8Array of the same bytes are equal. */
const comparable = (event: Partial<Envelope>) => ({
  ...event,
  headers: { ...event.headers },
  payload: Buffer.from(event.payload ?? []).toString("base64"),
});
