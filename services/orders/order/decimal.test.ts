import fc from "fast-check";
import { expect, test } from "vitest";
import {
  compareDecimals,
  type Decimal,
  formatDecimal,
  isMultipleOf,
  multiplyDecimals,
  parseDecimal,
  scaleMax,
} from "./decimal.ts";

const decimal = (value: string | number): Decimal => {
  const read = parseDecimal(value);
  if (!read) throw new Error(`${value} is no decimal`);
  return read;
};

/** Digits and scale, formatted by other means than the code's. */
const anyDecimal = fc
  .record({ digits: fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), scale: fc.integer({ min: 0, max: scaleMax }) })
  .map(({ digits, scale }) => {
    const sign = digits < 0n ? "-" : "";
    const all = `${digits < 0n ? -digits : digits}`.padStart(scale + 1, "0");
    const text =
      scale === 0 ? sign + all : `${sign}${all.slice(0, all.length - scale)}.${all.slice(all.length - scale)}`;
    return { digits, scale, text };
  });

test("a decimal keeps every digit except trailing zeros", () => {
  fc.assert(
    fc.property(anyDecimal, ({ text, digits, scale }) => {
      const read = decimal(text);
      expect(read.digits * 10n ** BigInt(scale - read.scale)).toBe(digits);
      expect(decimal(formatDecimal(read))).toEqual(read);
      expect(formatDecimal(read)).not.toMatch(/\.\d*0$|^-?0\d|e/);
    }),
  );
});

test("decimals are compared, multiplied and divided exactly", () => {
  fc.assert(
    fc.property(anyDecimal, anyDecimal, (a, b) => {
      const [x, y] = [decimal(a.text), decimal(b.text)];
      const [wide, other] = [a.digits * 10n ** BigInt(b.scale), b.digits * 10n ** BigInt(a.scale)];
      expect(compareDecimals(x, y)).toBe(wide < other ? -1 : wide > other ? 1 : 0);
      const product = multiplyDecimals(x, y);
      expect(product.digits * 10n ** BigInt(a.scale + b.scale - product.scale)).toBe(a.digits * b.digits);
      if (b.digits !== 0n) expect(isMultipleOf(x, y)).toBe(wide % other === 0n);
    }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), anyDecimal, (steps, { text }) => {
      const step = decimal(text);
      fc.pre(step.digits !== 0n);
      expect(isMultipleOf(multiplyDecimals(decimal(steps), step), step)).toBe(true);
    }),
  );
});

test("a number is parsed as its shortest text, without exponent", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 }),
      fc.nat({ max: 15 }),
      (n, scale) => {
        const text = `${n}e-${scale}`; // at most 15 digits, which a double preserves
        const read = decimal(Number(text));
        expect(read.digits * 10n ** BigInt(scaleMax - read.scale)).toBe(BigInt(n) * 10n ** BigInt(scaleMax - scale));
      },
    ),
  );
  const cases = [
    [0.1, "0.1"],
    [1e-7, "0.0000001"],
    [1.5e-9, "0.0000000015"],
    [1e21, "1000000000000000000000"],
    [-2.5, "-2.5"],
    [100, "100"],
    [0, "0"],
  ] as const;
  for (const [number, text] of cases) expect(formatDecimal(decimal(number))).toBe(text);
  expect(isMultipleOf(decimal(0.3), decimal(0.1))).toBe(true); // 0.3 % 0.1 is 0.0999… for doubles
});

test.each([
  "",
  "1.",
  ".5",
  "+1",
  "01",
  "1e3",
  "0x10",
  " 1",
  "1,5",
  "１",
  "NaN",
  `1${"0".repeat(24)}`,
  `0.${"1".repeat(19)}`,
])("%j is not a decimal", (text) => expect(parseDecimal(text)).toBeUndefined());

test("numbers beyond the bounds, NaN and Infinity are not decimals", () => {
  for (const number of [1e24, 1e-19, Number.NaN, Number.POSITIVE_INFINITY])
    expect(parseDecimal(number)).toBeUndefined();
});
