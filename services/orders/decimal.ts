/**
 * Exact decimals: a whole number of bigint size and the power of ten that it is divided by. Nothing is ever rounded, and no
 * floating point number takes part in any arithmetic.
 *
 * A JSON number has been a double by the time it is read; the edge has refused those whose digits a double would change
 * (packages/http/exact-number.ts), so its shortest text is what was sent.
 */

export interface Decimal {
  /** The digits, with the sign. */
  readonly digits: bigint;
  /** How many of them stand behind the point; 0 to `scaleMax`. */
  readonly scale: number;
}

/** Digits before and behind the point: more than any market has, and few enough that arithmetic stays cheap. */
export const wholeMax = 24;
export const scaleMax = 18;

/** No sign but -, no exponent, no point without digits on both sides. */
const decimalForm = new RegExp(`^-?(?:0|[1-9][0-9]{0,${wholeMax - 1}})(?:\\.[0-9]{1,${scaleMax}})?$`);

/** Undefined where it is no decimal within the bounds. */
export function parseDecimal(value: string | number): Decimal | undefined {
  const text = typeof value === "number" ? plainText(value) : value;
  if (!decimalForm.test(text)) return undefined;
  const [whole = "", fraction = ""] = text.split(".");
  return shortest(BigInt(whole + fraction), fraction.length);
}

/** A double without its exponent: 1e-7 is 0.0000001. */
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

/** Without zeros at its end: 1.50 and 1.5 are the same decimal. */
function shortest(digits: bigint, scale: number): Decimal {
  let [left, places] = [digits, scale];
  while (places > 0 && left % 10n === 0n) {
    left /= 10n;
    places--;
  }
  return { digits: left, scale: places };
}

export function textOfDecimal({ digits, scale }: Decimal): string {
  if (scale === 0) return digits.toString();
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, "0");
  return `${digits < 0n ? "-" : ""}${text.slice(0, -scale)}.${text.slice(-scale)}`;
}

/** Less than 0, 0, or more: as sort() wants it. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const [left, right] = alike(a, b);
  return left < right ? -1 : left > right ? 1 : 0;
}

export const multiplyDecimals = (a: Decimal, b: Decimal): Decimal => shortest(a.digits * b.digits, a.scale + b.scale);

/** Whether `a` is a whole number of steps. */
export function isMultipleOf(a: Decimal, step: Decimal): boolean {
  const [left, right] = alike(a, step);
  return right !== 0n && left % right === 0n;
}

export const isPositive = ({ digits }: Decimal): boolean => digits > 0n;

/** Both with as many places behind the point as the longer one has. */
function alike(a: Decimal, b: Decimal): readonly [bigint, bigint] {
  const scale = Math.max(a.scale, b.scale);
  return [a.digits * 10n ** BigInt(scale - a.scale), b.digits * 10n ** BigInt(scale - b.scale)];
}
