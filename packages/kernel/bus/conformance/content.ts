/** What comes out is what went in, byte for byte. */
import assert from "node:assert/strict";
import { until } from "../../testing/index.ts";
import { done } from "../../worker/outcome.ts";
import type { Envelope } from "../index.ts";
import type { BusUnderTest } from "./index.ts";
import { listen, setStage, store, thing } from "./stage.ts";

export function contentConforms(bus: BusUnderTest): void {
  const { name, test } = bus;

  test(`${name}: a payload of any bytes and of any size up to 1 MB comes as it was sent`, async () => {
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const large = new Uint8Array(1_000_000).map((_, n) => (n * 31 + (n >> 8)) % 256);
    await assertIntact(bus, [
      thing({ payload: new Uint8Array(0) }),
      thing({ payload: Uint8Array.of(0) }),
      thing({ payload: Uint8Array.of(10) }),
      thing({ payload: every }),
      // A window into a larger buffer: only what it shows may travel.
      thing({ payload: every.subarray(13, 200) }),
      thing({ payload: large }),
    ]);
  });

  test(`${name}: headers come as they were sent`, async () => {
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
    await assertIntact(bus, [thing({ headers }), thing({ headers: {} })]);
  });

  test(`${name}: id, type, aggregate, time and subject come as they were sent`, async () => {
    const aggregateKeys = [
      `user/1 *.>#"é`,
      "日本語 🎮",
      " space before and after ",
      "two\nlines\tand a tab",
      "100% %25 %zz",
      "e\u0301 is not \u00e9",
      "k".repeat(1_000),
    ];
    const keyed = aggregateKeys.map((aggregateKey) => thing({ aggregateKey }));
    await assertIntact(bus, [
      ...keyed,
      thing({ eventId: "01890a5d-ac96-774b-bcce-b302099a8057", eventType: "points.granted.v2" }),
      thing({ occurredAt: "2026-02-03T04:05:06.123456Z" }),
      thing({ subject: "things.deeply.nested.events" }),
    ]);
  });

  test(`${name}: an event too large for the bus is dead, and the others of its call are stored`, async () => {
    await using stage = setStage(bus);
    await stage.introduce();
    const process = await stage.open();
    const ear = await listen(process);
    const [before, after, later] = [thing(), thing(), thing()];
    const tooLarge = thing({ payload: new Uint8Array(bus.payloadBytesMax + 1) });
    const outcomes = await process.publish([before, tooLarge, after]);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["done", "dead", "done"],
    );
    await store(process, [later]);
    await until("the others arrive", () => [before, after, later].every((event) => ear.timesHeard(event) === 1));
    assert.equal(ear.timesHeard(tooLarge), 0);
  });
}

async function assertIntact(bus: BusUnderTest, events: readonly Envelope[]): Promise<void> {
  await using stage = setStage(bus);
  const subjects = [...new Set(events.map((event) => event.subject))];
  await stage.introduce("listener", subjects);
  const process = await stage.open();
  await store(process, events);
  const ear = await listen(process, { subjects, answer: () => done });
  await until("all are heard", () => ear.heard.length === events.length);
  for (const event of events) {
    const { redelivered: _, ...received } = ear.heard.find(({ eventId }) => eventId === event.eventId) ?? {};
    assert.deepEqual(comparable(received), comparable(event));
  }
}

/** A Buffer and a Uint8Array of the same bytes are the same payload. */
const comparable = (event: Partial<Envelope>) => ({
  ...event,
  headers: { ...event.headers },
  payload: Buffer.from(event.payload ?? []).toString("base64"),
});
