import type { Problem } from "@todoke/kernel/problem";
import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type CursorForm, page, parseCursor } from "./page.ts";

const encoded = (text: string | Uint8Array) => Buffer.from(text as string).toString("base64url");

/** The status of the refusal, or what was read. */
function read(cursor: string, form: CursorForm): number | readonly string[] | undefined {
  try {
    return parseCursor({ cursor }, form);
  } catch (error) {
    return (error as Problem).status;
  }
}

const uuid = "01890a5d-ac96-774b-bcce-b302099a8057";

test("a cursor is parsed into its parts", async () => {
  const time = "2024-02-29T23:59:59.999999Z";
  const { next_cursor } = await page({ limit: 1 }, { read: async () => [1, 2], name: () => `${time} 42` });
  expect(read(next_cursor ?? "", { parts: ["timeMicros", "bigint"] })).toEqual([time, "42"]);
  expect(read(encoded(`-12.${uuid}`), { parts: ["epochMicros", "uuid"], separator: "." })).toEqual(["-12", uuid]);
  expect(read(encoded("a name with spaces"), { parts: ["text"] })).toEqual(["a name with spaces"]);
  expect(parseCursor({}, { parts: ["text"] })).toBeUndefined();
});

test.each<[string, CursorForm["parts"], readonly string[]]>([
  [
    "times that do not exist",
    ["timeMicros"],
    [
      "2026-02-30T00:00:00.000000Z",
      "2026-02-29T00:00:00.000000Z",
      "2026-13-01T00:00:00.000000Z",
      "2026-00-01T00:00:00.000000Z",
      "2026-01-00T00:00:00.000000Z",
      "2026-01-01T24:00:00.000000Z",
      "2026-01-01T00:60:00.000000Z",
      "2026-01-01T23:59:60.000000Z",
      "0000-01-01T00:00:00.000000Z",
      "9999-99-99T99:99:99.999999Z",
    ],
  ],
  [
    "times in another form",
    ["timeMicros"],
    ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z", "infinity", "2026-01-01T00:00:00.000000+00:00"],
  ],
  ["times with microseconds where milliseconds are meant", ["timeMillis"], ["2026-01-01T00:00:00.000000Z"]],
  ["numbers past an integer", ["int"], ["0", "-1", "01", "1.0", "1e3", "2147483648", "9999999999"]],
  ["numbers past a bigint", ["bigint"], ["0", "-1", "9223372036854775808", "99999999999999999999", "0x1"]],
  ["ids that are none", ["uuid"], ["-".repeat(36), uuid.toUpperCase(), `${uuid}0`, uuid.replaceAll("-", ""), ""]],
  ["texts that cannot be stored", ["text"], ["a\0b", "", "x".repeat(257)]],
  [
    "too few and too many parts",
    ["timeMicros", "bigint"],
    ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z 1 1", " ", "1"],
  ],
])("%s are rejected with 400", (_what, parts, texts) => {
  for (const text of texts) expect([text, read(encoded(text), { parts })]).toEqual([text, 400]);
});

test("a cursor that does not encode to the same text is rejected", () => {
  const bytes = Buffer.from([0x66, 0xff, 0x6f]);
  for (const cursor of ["!", "YQ==", "Y Q", `${encoded("a")}=`, encoded(bytes), "YR"])
    expect([cursor, read(cursor, { parts: ["text"] })]).toEqual([cursor, 400]);
});

test("any cursor is parsed or rejected with 400", () => {
  const digits = fc.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \d{1,20}$/);
  const texts = fc.oneof(digits, fc.string({ unit: "binary", maxLength: 60 }));
  fc.assert(
    fc.property(texts, (text) => {
      const found = read(encoded(text), { parts: ["timeMicros", "bigint"] });
      if (found === 400) return;
      const [time = "", id = ""] = found as readonly string[];
      expect(new Date(time).toISOString().slice(0, 19)).toBe(time.slice(0, 19));
      expect(BigInt(id)).toBeLessThan(2n ** 63n);
    }),
    { numRuns: repetitions(1_000) },
  );
});
