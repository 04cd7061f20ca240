import fc from "fast-check";
import { expect, test } from "vitest";
import { frameToLanguage, readFrames } from "./frames.ts";

const notification = {
  notification_id: "n",
  event_type: "T",
  text: { en: "Hello $1", ja: "こんにちは" },
  data: { match_id: "m_1", team: 2 },
  occurred_at: "t",
};
const stream = [
  "retry: 1000\nid: 0.0\n\n",
  ":\n\n",
  `id: 7.1\nevent: notification\ndata: ${JSON.stringify(notification)}\n\n`,
  "id: 0.0\nevent: reset\ndata: {}\n\n",
];

test("frames are complete, however the bytes are cut", async () => {
  const bytes = Buffer.from(`${stream.join("")}id: 8.1\nevent: not`); // It breaks off in the middle of the last.
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 40 }), async (cuts) => {
      const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
      const chunks = places.slice(1).map((end, place) => bytes.subarray(places[place], end));
      async function* arriving() {
        yield* chunks;
      }
      expect((await Array.fromAsync(readFrames(arriving()))).flat()).toEqual(stream);
    }),
  );
});

test("notifications are translated, other frames are unchanged", () => {
  expect(stream.map((frame) => frameToLanguage(frame, "ja"))).toEqual([
    stream[0],
    stream[1],
    `id: 7.1\nevent: notification\ndata: ${JSON.stringify({ ...notification, text: "こんにちは" })}\n\n`,
    stream[3],
  ]);
  expect(frameToLanguage(stream[2] ?? "", "en")).toContain('"text":"Hello $1"');
});

test("an event past the maximum length is an error", async () => {
  async function* endless() {
    for (;;) yield Buffer.from("x".repeat(100_000));
  }
  await expect(Array.fromAsync(readFrames(endless()))).rejects.toThrow("longer than");
});
