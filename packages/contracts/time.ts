/**
 * RFC 3339 times as PostgreSQL writes them into JSON, to the nanosecond, without passing through a `Date`: that would
 * cut microseconds off and turn 30 February into 2 March.
 */

export interface Instant {
  /** Since 1970, rounded down: also before 1970 the nanoseconds count forward. */
  readonly seconds: number;
  readonly nanos: number;
}

const rfc3339 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** From 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z: what a google.protobuf.Timestamp may hold. */
const secondsMin = -62_135_596_800;
const secondsMax = 253_402_300_799;

export const isInstant = (seconds: number | bigint, nanos: number): boolean =>
  seconds >= secondsMin && seconds <= secondsMax && nanos >= 0 && nanos <= 999_999_999;

/** Undefined when `text` is not a time that exists. */
export function parseInstant(text: string): Instant | undefined {
  if (!rfc3339.test(text) || !dayExists(text)) return undefined;
  const zoneAt = text.endsWith("Z") ? text.length - 1 : text.length - 6;
  const seconds = Date.parse(text.slice(0, 19) + text.slice(zoneAt)) / 1_000;
  const nanos = zoneAt > 20 ? Number(text.slice(20, zoneAt).padEnd(9, "0")) : 0;
  return isInstant(seconds, nanos) ? { seconds, nanos } : undefined;
}

/** `Date.parse` takes any day up to 31 in any month and carries it over. */
function dayExists(text: string): boolean {
  const day = Number(text.slice(8, 10));
  if (day <= 28) return true;
  const [year, month] = [Number(text.slice(0, 4)), Number(text.slice(5, 7))];
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
