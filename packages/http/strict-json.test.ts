import { Problem } from "@todoke/kernel/problem";
import { repetitions } from "@todoke/kernel/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { depthMax, itemsMax } from "./json-error.ts";
import { parseStrictJson } from "./strict-json.ts";

const parse = (text: string | Uint8Array) => parseStrictJson(Buffer.from(text as string));

/** What the response says: code, field, and the sentence. */
function refusalOf(text: string | Uint8Array) {
  try {
    parse(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { code: error.code, status: error.status, field: error.fields?.[0]?.field, detail: error.message };
  }
  throw new Error(`accepted: ${text.slice(0, 80)}`);
}

test.each([
  ['{"user_id":"u-1","amount":9007199254740991,"ok":true,"none":null}'],
  ['{"name":"届け","emoji":"😀","escaped":"\\u5c4a\\ud83d\\ude00","text":"a\\nb\\tc\\r\\"\\\\\\/"}'],
  ['{"constructor":"Ferrari","price":-12.5,"rate":1.5e-7,"zero":0,"big":-9007199254740991}'],
  ['{"f":0.30000000000000004,"g":2.2250738585072014e-308,"h":1e15,"i":1E+2,"j":0.000,"k":1.50}'],
  ['[{"a":1},{"a":1},[[]],{}]'],
  [' \t\r\n{ "a" : [ 1 , 2 ] } \n'],
  ['"text"'],
  ["12"],
  ["null"],
])("plain JSON is read as by JSON.parse: %s", (text) => {
  expect(parse(text)).toEqual(JSON.parse(text));
});

test.each([
  // Numbers that a double would round.
  ['{"amount":9007199254740993}', "body.amount", "9007199254740993 is too large to be exact; send it as a string"],
  ['{"amount":9007199254740992}', "body.amount", "is too large to be exact"],
  ['{"amount":-9007199254740993}', "body.amount", "is too large to be exact"],
  ['{"amount":9223372036854775807}', "body.amount", "is too large to be exact"],
  ['{"amount":1e400}', "body.amount", "1e400 is too large to be exact"],
  ['{"amount":1e21}', "body.amount", "is too large to be exact"],
  ['{"amount":1e-400}', "body.amount", "1e-400 cannot be represented exactly"],
  ['{"amount":4.9999999999999999}', "body.amount", "cannot be represented exactly"],
  ['{"amount":0.1234567890123456789}', "body.amount", "cannot be represented exactly"],
  [`{"amount":1${"0".repeat(70_000)}1}`, "body.amount", "is too large to be exact"],
  [`{"amount":0.${"0".repeat(70_000)}1}`, "body.amount", "cannot be represented exactly"],
  ['{"amount":-0}', "body.amount", "-0 is read as 0"],
  ['{"amount":-0.0}', "body.amount", "-0 is read as 0"],
  // Text that PostgreSQL cannot keep.
  ['{"a":{"name":"x\\u0000y"}}', "body.a.name", 'contains the control character "\\u0000"'],
  ['{"name":"\\u001b[31m"}', "body.name", 'contains the control character "\\u001b"'],
  ['{"name":"\\b"}', "body.name", "contains the control character"],
  ['{"name":"\\f"}', "body.name", "contains the control character"],
  ['{"list":["ok","\\ud800"]}', "body.list[1]", "contains half of a surrogate pair"],
  ['{"name":"\\udc00\\ud800"}', "body.name", "contains half of a surrogate pair"],
  ['{"name":"\\uD83Dx"}', "body.name", "contains half of a surrogate pair"],
  ['{"x\\u0000":1}', "body", "contains the control character"],
  // Names that mean two things, or something else to a program than to its reader.
  ['{"a":1,"b":2,"a":3}', "body.a", "is given twice"],
  ['{"items":[{"n":1},{"n":1,"n":1}]}', "body.items[1].n", "is given twice"],
  ['{"a":1,"\\u0061":2}', "body.a", "is given twice"],
  ['{"a":1,"b":{"a":1,"c":2},"c":{"a":1},"b":{"a":1}}', "body.b", "is given twice"],
  ['{"__proto__":{"admin":true}}', "body.__proto__", "is not a field name"],
  ['{"a":[{"\\u005f_proto__":null}]}', "body.a[0].__proto__", "is not a field name"],
  ['{"constructor":{"prototype":{"admin":true}}}', "body.constructor", "is not a field name"],
  // Bounds.
  [`${"[".repeat(33)}${"]".repeat(33)}`, `body${"[0]".repeat(32)}`, "is nested deeper than 32 levels"],
  [`${'{"a":'.repeat(33)}1${"}".repeat(33)}`, `body${".a".repeat(32)}`, "is nested deeper than 32 levels"],
  [`[${"0,".repeat(10_000)}0]`, "body[10000]", "is past the 10000 fields and elements"],
])("JSON that cannot be stored unchanged is rejected by field: %s", (text, field, detail) => {
  const refusal = refusalOf(text);
  expect(refusal).toMatchObject({ code: "invalid-request", status: 400, field });
  expect(refusal.detail).toContain(detail);
});

test.each([
  ["", "body is empty"],
  [" \n", "body is empty"],
  ["\ufeff{}", "starts with a byte order mark"],
  ["{} {}", "is followed by something else (line 1, column 4)"],
  ['{"a":1}x', "is followed by something else"],
  ["{", "body ends where a field name in double quotes is expected"],
  ['{"a"', 'body.a ends where ":" is expected'],
  ['{"a":', "body.a ends where a value is expected"],
  ['{"a":1', 'body ends where "," is expected'],
  ['{"a":1,}', 'body has "}" where a field name in double quotes is expected (line 1, column 8)'],
  ["[1,]", 'body[1] has "]" where a value is expected'],
  ["[1 2]", 'has "2" where "," is expected'],
  ["{'a':1}", 'has "\'" where a field name in double quotes is expected'],
  ["{a:1}", 'has "a" where a field name'],
  ['{"a":NaN}', 'body.a has "N" where a value is expected'],
  ['{"a":Infinity}', 'body.a has "I" where a value is expected'],
  ['{"a":01}', 'body has "1" where "," is expected'],
  ['{"a":+1}', 'body.a has "+" where a value is expected'],
  ['{"a":.5}', "where a value is expected"],
  ['{"a":0x10}', "is expected"],
  ['{"a":"\n"}', "has an unescaped control character in the string that starts (line 1, column 6)"],
  ['{"a":"\0"}', "has an unescaped control character"],
  ['{"a":"\\x41"}', "has a broken escape in the string that starts (line 1, column 6)"],
  ['{"a":"\\u12"}', "has a broken escape"],
  ['{"a":"b', "has no end to the string that starts (line 1, column 6)"],
  ['{"a":"b\\"', "has no end to the string"],
  ['{\n "a": 1,\n "b": tru\n}', 'body.b has "t" where a value is expected (line 3, column 7)'],
  ["// no\n{}", 'has "/" where a value is expected'],
  ["\u2028", "where a value is expected"],
])("text that is not JSON is rejected with its position: %j", (text, detail) => {
  const refusal = refusalOf(text);
  expect(refusal).toMatchObject({ code: "malformed-json", status: 400 });
  expect(refusal.detail).toContain(detail);
});

test.each([
  ["a stray byte", [0x22, 0xff, 0x22]],
  ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
  ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ["a character past U+10FFFF", [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
  ["half a character", [0x22, 0xe3, 0x81, 0x22]],
  ["UTF-16", [...Buffer.from('{"a":1}', "utf16le")].concat(0xd8)],
])("bytes that are not UTF-8 are rejected: %s", (_name, bytes) => {
  expect(refusalOf(Uint8Array.from(bytes))).toMatchObject({
    code: "malformed-json",
    detail: "the body is not valid UTF-8",
  });
});

test("a body at the bounds of depth and size is accepted", () => {
  expect(parse(`${"[".repeat(depthMax)}${"]".repeat(depthMax)}`)).toBeDefined();
  expect(parse(`[${"0,".repeat(itemsMax - 1)}0]`)).toHaveLength(itemsMax);
  expect(parse(`{"a":[${"0,".repeat(itemsMax - 2)}0]}`)).toBeDefined();
});

test("no body of 64 kB takes long to read", () => {
  const hostile = [
    "[".repeat(65_000),
    `{"a":"${"\\\\".repeat(32_000)}"}`,
    `{"a":"${"\\ud83d\\ude00".repeat(5_000)}"}`,
    `{${Array.from({ length: 8_000 }, (_, i) => `"${i}":0`).join()},"0":1}`,
    `[${"-".repeat(65_000)}`,
    `{"a":1${"0".repeat(65_000)}1}`,
    `${" ".repeat(65_000)}x`,
    `[${"\n".repeat(65_000)}x`,
    `[${"{},".repeat(9_000)}-0]`,
  ];
  for (const text of hostile) {
    const before = process.cpuUsage();
    try {
      parse(text);
    } catch (error) {
      expect(error).toBeInstanceOf(Problem);
    }
    // A few milliseconds; what grows with the square of the length would take seconds.
    expect(process.cpuUsage(before).user, text.slice(0, 20)).toBeLessThan(500_000);
  }
});

test("a rejection shows a short excerpt of the body, without terminal control characters", () => {
  const { detail = "" } = refusalOf(`{"${"k".repeat(5_000)}\\u009b31m\\u202e":-0}`);
  expect(detail.length).toBeLessThan(300);
  expect(detail).not.toMatch(/[\x7f-\x9f\u202e]/);
});

test("any JSON value is accepted if and only if it keeps the rules, as JSON.parse reads it", () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 6, noUnicodeString: false }),
      fc.constantFrom(undefined, 1),
      (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        if (isWithinRules(text)) expect(parse(text)).toEqual(JSON.parse(text));
        else expect(refusalOf(text).code).toBe("invalid-request");
      },
    ),
    { numRuns: repetitions(1_000) },
  );
});

test("any text of JSON characters is accepted iff JSON.parse accepts it and it keeps the rules", () => {
  const signs = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    '"b"',
    '"\\u0061"',
    '"\\ud83d',
    "\\ude00",
    "0",
    "-0",
    "1",
    "-1",
  ];
  const more = [
    "1e5",
    "e400",
    ".5",
    "1234567890123456",
    "true",
    "null",
    " ",
    "\n",
    "\\",
    "\\u0000",
    "\\n",
    "__proto__",
    "届",
  ];
  const text = fc.array(fc.constantFrom(...signs, ...more), { maxLength: 14 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, (candidate) => {
      if (isJson(candidate) && isWithinRules(candidate)) expect(parse(candidate)).toEqual(JSON.parse(candidate));
      else expect(refusalOf(candidate).status).toBe(400);
    }),
    { numRuns: repetitions(10_000) },
  );
});

test("any bytes give a value or a Problem", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        parse(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(Problem);
        expect((error as Problem).status).toBe(400);
      }
    }),
    { numRuns: repetitions(3_000) },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The rules once more, by other means: the reviver of JSON.parse sees the text of every number, and every value. */
function isWithinRules(text: string): boolean {
  let fine = true;
  const look = (key: string, value: unknown, context: { source?: string }) => {
    if (![key, value].every((text) => typeof text !== "string" || canBeKept(text))) fine = false;
    if (key === "__proto__" || (key === "constructor" && isObject(value))) fine = false;
    if (typeof value === "number" && !isExact(value, context.source ?? "")) fine = false;
    return value;
  };
  const value = JSON.parse(text, look as (key: string, value: unknown) => unknown); // The types lag behind the language.
  return fine && namesOf(text) === namesIn(value);
}

const canBeKept = (text: string) =>
  text.isWellFormed() && ![...text].some((char) => char < " " && !"\t\n\r".includes(char));
const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Exact when the shortest text of the double, or the double to as many digits, is the number that was written. */
function isExact(value: number, source: string): boolean {
  if (Object.is(value, -0) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const [digits = ""] = source.replace(/^-/, "").split(/e/i);
  if (digits.replace(/\D/g, "").replace(/^0+/, "") === "") return true;
  return value !== 0 && decimalOf(source) === decimalOf(value.toPrecision(Math.max(1, significantOf(source))));
}

const significantOf = (source: string) => (source.split(/e/i)[0] ?? "").replace(/\D/g, "").replace(/^0+/, "").length;

/** A fraction of two big integers, as text: no rounding anywhere. */
function decimalOf(source: string): string {
  const [mantissa = "", exponent = "0"] = source.split(/e/i);
  const [whole = "", fraction = ""] = mantissa.split(".");
  let numerator = BigInt(whole + fraction);
  let power = Number(exponent) - fraction.length;
  while (numerator !== 0n && numerator % 10n === 0n) {
    numerator /= 10n;
    power++;
  }
  return `${numerator}e${power}`;
}

/** Names in the text: every string that a colon follows. */
const namesOf = (text: string) => [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon).length;

function namesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const within = Object.values(value).reduce((sum: number, each) => sum + namesIn(each), 0);
  return within + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

test("a route with long integers gets those that a double would round as digits", () => {
  const long = (text: string) => parseStrictJson(Buffer.from(text), { longIntegers: true });
  const body = '{"a":9223372036854775807,"b":-9007199254740993,"c":[9007199254740991,1.5,"9007199254740993"]}';
  expect(long(body)).toEqual({
    a: "9223372036854775807",
    b: "-9007199254740993",
    c: [9_007_199_254_740_991, 1.5, "9007199254740993"],
  });
  // All else is refused as everywhere.
  for (const text of [
    '{"a":9007199254740993.5}',
    '{"a":1e21}',
    '{"a":9007199254740993,"a":1}',
    `{"a":1${"0".repeat(99)}}`,
  ])
    expect(() => long(text)).toThrow(Problem);
});
