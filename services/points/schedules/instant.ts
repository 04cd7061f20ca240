/** Times as callers write them: RFC 3339 with any offset, from the year 0001 to the year 9999 in UTC. */

const firstMs = Date.parse("0001-01-01T00:00:00Z");
const endMs = Date.UTC(10_000, 0, 1);

/** The range of RFC 3339, which our tables and events share. */
export const isWithinCalendar = ({ epochMilliseconds }: Temporal.Instant): boolean =>
  epochMilliseconds >= firstMs && epochMilliseconds < endMs;

export type Precision = "microsecond" | "millisecond";

/**
 * Converts to UTC and rounds up to what the database stores: rounded down, a grant would come early. Returns undefined for
 * an invalid time or one out of range.
 */
export function parseInstant(text: string, smallestUnit: Precision): string | undefined {
  try {
    const instant = Temporal.Instant.from(text).round({ smallestUnit, roundingMode: "ceil" });
    const fractionalSecondDigits = smallestUnit === "microsecond" ? 6 : 3;
    return isWithinCalendar(instant) ? instant.toString({ fractionalSecondDigits }) : undefined;
  } catch {
    return undefined;
  }
}
