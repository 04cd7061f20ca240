/**
 * Times between RFC 3339 and google.protobuf.Timestamp. They are not parsed by `Date` alone, which drops microseconds and turns
 * 30 February into 2 March.
 */

interface Timestamp<Seconds = number> {
  /** Since 1970, rounded down: before 1970, too, `nanos` counts forward. */
  readonly seconds: Seconds;
  readonly nanos: number;
}

const rfc3339 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

// The range of google.protobuf.Timestamp: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
const secondsMin = -62_135_596_800;
const secondsMax = 253_402_300_799;

export const isInRange = ({ seconds, nanos }: Timestamp<number | bigint>): boolean =>
  seconds >= secondsMin && seconds <= secondsMax && nanos >= 0 && nanos <= 999_999_999;

/** Returns undefined if `text` is not RFC 3339 or the day does not exist. */
export function parseTimestamp(text: string): Timestamp | undefined {
  if (!rfc3339.test(text) || !dayExists(text)) return undefined;
  const zoneAt = text.endsWith("Z") ? text.length - 1 : text.length - 6;
  const seconds = Date.parse(text.slice(0, 19) + text.slice(zoneAt)) / 1_000;
  const nanos = zoneAt > 20 ? Number(text.slice(20, zoneAt).padEnd(9, "0")) : 0;
  const timestamp = { seconds, nanos };
  return isInRange(timestamp) ? timestamp : undefined;
}

/** `Date.parse` accepts a 31st in every month and carries it over. */
function dayExists(text: string): boolean {
  const day = Number(text.slice(8, 10));
  if (day <= 28) return true;
  const [year, month] = [Number(text.slice(0, 4)), Number(text.slice(5, 7))];
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** RFC 3339 in UTC with the microseconds that PostgreSQL stores: events of the same millisecond keep their order. */
export function formatTimestamp({ seconds, nanos }: Timestamp<bigint>): string {
  const wholeSeconds = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${wholeSeconds}.${String(Math.floor(nanos / 1_000)).padStart(6, "0")}Z`;
}
