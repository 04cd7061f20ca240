/**
 * Finds numbers of a JSON text that a JavaScript number cannot hold exactly.
 *
 * JSON.parse rounds them silently: 9007199254740993 becomes …992, 1e400 becomes Infinity. A balance must not change by
 * being read.
 */

const literalMax = 100; // As many digits as toPrecision() can give; no double needs them.

const longInteger = /^-?[1-9]\d{0,38}$/;

/** A whole number that no double holds exactly. Routes that accept these get them as text. */
export const isLongInteger = (literal: string): boolean =>
  longInteger.test(literal) && !Number.isSafeInteger(Number(literal));

/** Undefined if the number is exact. */
export function lossOf(literal: string): string | undefined {
  const value = Number(literal);
  if (Object.is(value, -0)) return "-0 is read as 0; send 0";
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return `${short(literal)} is too large to be exact; send it as a string`;
  }
  if (!keepsItsDigits(literal, value)) return `${short(literal)} cannot be represented exactly; send it as a string`;
  return undefined;
}

/** Printed with the same number of digits, it must be the same: 0.1 is, 4.9999999999999999 is not. */
function keepsItsDigits(literal: string, value: number): boolean {
  if (literal.length > literalMax) return false;
  const given = scientific(literal);
  const kept = scientific(value.toPrecision(given.digits.length || 1));
  return kept.digits === given.digits && kept.exponent === given.exponent;
}

/** 1200.50 and 0.12005e4 are both 12005 with exponent 4; zero has no digits. The sign is never lost. */
function scientific(literal: string): { digits: string; exponent: number } {
  const [mantissa = "", power = "0"] = literal.replace(/^-/, "").toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "");
  if (digits === "") return { digits, exponent: 0 };
  return { digits: digits.replace(/0+$/, ""), exponent: Number(power) + whole.length - (all.length - digits.length) };
}

const short = (literal: string) => (literal.length > 40 ? `${literal.slice(0, 40)}…` : literal);
