import fc from "fast-check";
import { expect, test } from "vitest";
import { frameToLanguage, readFrames } from "./frames.ts";

const told = {
  notification_id: "n",
  event_type: "T",
  text: { en: "Hello $1", ja: "こんにちは" },
  data: { match_id: "m_1", team: 2 },
  occurred_at: "t",
};
const stream = [
  "retry: 1000\nid: 0.0\n\n",
  ":\n\n",
  `id: 7.1\nevent: notification\ndata: ${JSON.stringify(told)}\n\n`,
  "id: 0.0\nevent: reset\ndata: {}\n\n",
];

test("however the bytes of a stream are cut, the same events come, each whole", async () => {
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

test("what is told is in the language of the player, and all else goes through as it is", () => {
  expect(stream.map((frame) => frameToLanguage(frame, "ja"))).toEqual([
    stream[0],
    stream[1],
    `id: 7.1\nevent: notification\ndata: ${JSON.stringify({ ...told, text: "こんにちは" })}\n\n`,
    stream[3],
  ]);
  expect(frameToLanguage(stream[2] ?? "", "en")).toContain('"text":"Hello $1"');
});

test("an event without an end is not waited for without an end", async () => {
  async function* endless() {
    for (;;) yield Buffer.from("x".repeat(100_000));
  }
  await expect(Array.fromAsync(readFrames(endless()))).rejects.toThrow("longer than");
});
