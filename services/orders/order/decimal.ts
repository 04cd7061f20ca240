/**
 * Exact decimals: a bigint and a power of ten. Nothing is rounded, and no floating point number takes part in the arithmetic.
 *
 * A JSON number is parsed as a double. The edge rejects numbers whose digits a double would change
 * (packages/http/exact-number.ts), so its shortest text is what was sent.
 */

export interface Decimal {
  /** All digits, with the sign. */
  readonly digits: bigint;
  /** How many of them are fraction digits; 0 to `scaleMax`. */
  readonly scale: number;
}

/** Digits before and after the point: more than any market needs, few enough for cheap arithmetic. */
export const wholeMax = 24;
export const scaleMax = 18;

/** An optional minus sign, no exponent, digits on both sides of the point. */
const decimalForm = new RegExp(`^-?(?:0|[1-9][0-9]{0,${wholeMax - 1}})(?:\\.[0-9]{1,${scaleMax}})?$`);

/** Undefined if it is not a decimal within the bounds. */
export function parseDecimal(value: string | number): Decimal | undefined {
  const text = typeof value === "number" ? plainText(value) : value;
  if (!decimalForm.test(text)) return undefined;
  const [whole = "", fraction = ""] = text.split(".");
  return normalize(BigInt(whole + fraction), fraction.length);
}

/** A double without exponent: 1e-7 is 0.0000001. */
function plainText(value: number): string {
  const [mantissa = "", power] = String(value).split("e");
  if (power === undefined) return mantissa;
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const point = whole.length + Number(power);
  const digits = whole + fraction;
  const sign = value < 0 ? "-" : "";
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return sign + digits.padEnd(point, "0").slice(0, point) + (digits.length > point ? `.${digits.slice(point)}` : "");
}

/** Without trailing zeros: 1.50 and 1.5 are the same decimal. */
function normalize(digits: bigint, scale: number): Decimal {
  let [left, places] = [digits, scale];
  while (places > 0 && left % 10n === 0n) {
    left /= 10n;
    places--;
  }
  return { digits: left, scale: places };
}

export function formatDecimal({ digits, scale }: Decimal): string {
  if (scale === 0) return digits.toString();
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, "0");
  return `${digits < 0n ? "-" : ""}${text.slice(0, -scale)}.${text.slice(-scale)}`;
}

/** As for sort(). */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const [left, right] = toSameScale(a, b);
  return left < right ? -1 : left > right ? 1 : 0;
}

export const multiplyDecimals = (a: Decimal, b: Decimal): Decimal => normalize(a.digits * b.digits, a.scale + b.scale);

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const [left, right] = toSameScale(a, b);
  return normalize(left + right, Math.max(a.scale, b.scale));
}

/** Decimals of a broker's reply may have more digits than an order may; undefined if one is not a decimal. */
export function sumDecimals(texts: readonly string[]): Decimal | undefined {
  let sum: Decimal = { digits: 0n, scale: 0 };
  for (const text of texts) {
    const value = parseAnyDecimal(text);
    if (!value) return undefined;
    sum = addDecimals(sum, value);
  }
  return sum;
}

export function areEqualDecimals(text: string, other: Decimal | undefined): boolean {
  const value = parseAnyDecimal(text);
  return value !== undefined && other !== undefined && compareDecimals(value, other) === 0;
}

/** As parseDecimal, without its bounds: sums and products have more digits. */
export function parseAnyDecimal(text: string): Decimal | undefined {
  if (!/^-?[0-9]{1,128}(?:\.[0-9]{1,128})?$/.test(text)) return undefined;
  const [whole = "", fraction = ""] = text.split(".");
  return normalize(BigInt(whole + fraction), fraction.length);
}

/** Whether `a` is a multiple of `step`. */
export function isMultipleOf(a: Decimal, step: Decimal): boolean {
  const [left, right] = toSameScale(a, step);
  return right !== 0n && left % right === 0n;
}

export const isPositive = ({ digits }: Decimal): boolean => digits > 0n;

/** The digits of both at the larger scale. */
function toSameScale(a: Decimal, b: Decimal): readonly [bigint, bigint] {
  const scale = Math.max(a.scale, b.scale);
  return [a.digits * 10n ** BigInt(scale - a.scale), b.digits * 10n ** BigInt(scale - b.scale)];
}
