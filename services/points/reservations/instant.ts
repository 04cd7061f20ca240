/** Points in time as callers write them: RFC 3339 with any offset, from the year 0001 to the year 9999 in UTC. */

const firstMs = Date.parse("0001-01-01T00:00:00Z");
const endMs = Date.UTC(10_000, 0, 1);

/** What an RFC 3339 time, and every table and event of ours, can hold. */
export const isWithinCalendar = ({ epochMilliseconds }: Temporal.Instant): boolean =>
  epochMilliseconds >= firstMs && epochMilliseconds < endMs;

export type Precision = "microsecond" | "millisecond";

/**
 * In UTC, and rounded up where the database keeps less than was said: rounded down, a grant would come early. Undefined for
 * what is no time, or none that can be kept.
 */
export function utcOf(text: string, smallestUnit: Precision): string | undefined {
  try {
    const instant = Temporal.Instant.from(text).round({ smallestUnit, roundingMode: "ceil" });
    const fractionalSecondDigits = smallestUnit === "microsecond" ? 6 : 3;
    return isWithinCalendar(instant) ? instant.toString({ fractionalSecondDigits }) : undefined;
  } catch {
    return undefined;
  }
}
