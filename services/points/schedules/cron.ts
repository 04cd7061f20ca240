/**
 * Cron expressions with five fields (minute, hour, day of the month, month, day of the week) in the local time of a zone.
 *
 *  - `*`, numbers, ranges `1-5`, steps, lists, JAN to DEC, SUN to SAT (7 is also Sunday), and `L`, the last day of the month.
 *    A day that a month does not have is skipped.
 *  - If both days are given, either matches, as in every cron.
 *  - A local time that daylight saving skips runs at the moment of the change; one that occurs twice runs the first time.
 *    Use UTC for even intervals.
 */
import { isWithinCalendar } from "./instant.ts";

export interface Cron {
  /** The first occurrence after `after`, to the minute; undefined if there is none up to the year 9999. */
  next(after: Temporal.Instant): Temporal.Instant | undefined;
}

/** The message is for the caller. */
export class CronError extends Error {
  override readonly name = "CronError";
}

interface Fields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly lastDay: boolean;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Both days are given: either matches. */
  readonly eitherDay: boolean;
}

const textMax = 200;

export function parseCron(text: string, timeZone: string): Cron {
  const parts = text.trim().split(/\s+/);
  if (text.length > textMax || parts.length !== 5) {
    throw new CronError("cron must have five fields: minute, hour, day of the month, month, day of the week");
  }
  const [minute, hour, day, month, weekday] = parts as [string, string, string, string, string];
  const lastDay = day.split(",").includes("L");
  const fields: Fields = {
    minutes: sorted(parseField(minute, { unit: "minute", from: 0, to: 59 })),
    hours: sorted(parseField(hour, { unit: "hour", from: 0, to: 23 })),
    days: parseField(withoutLast(day), { unit: "day of the month", from: 1, to: 31 }),
    lastDay,
    months: parseField(month, { unit: "month", from: 1, to: 12, names: monthNames }),
    weekdays: new Set(
      [...parseField(weekday, { unit: "day of the week", from: 0, to: 7, names: dayNames })].map((n) => n % 7),
    ),
    eitherDay: !day.startsWith("*") && !weekday.startsWith("*"),
  };
  const zone = validZone(timeZone);
  if (!localTimes(fields, leapCycleStart).next().value) throw new CronError(`cron "${text}" has no occurrence`);
  return { next: (after) => nextOccurrence(fields, zone, after) };
}

const leapCycleStart = Temporal.PlainDateTime.from("2000-01-01T00:00");

function validZone(timeZone: string): string {
  try {
    // An offset such as +09:00 is not a zone.
    if (!/^[A-Za-z][\w+\-/]{1,63}$/.test(timeZone)) throw new RangeError(timeZone);
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(timeZone).timeZoneId;
  } catch {
    throw new CronError("time_zone must be the name of a time zone, such as Asia/Tokyo or UTC");
  }
}

function nextOccurrence(fields: Fields, zone: string, after: Temporal.Instant): Temporal.Instant | undefined {
  const from = after.toZonedDateTimeISO(zone).toPlainDateTime();
  // Local times and their instants have the same order, so the first instant after `after` is the next. Earlier ones belong
  // to an hour that occurs twice.
  for (const local of localTimes(fields, from.round({ smallestUnit: "minute", roundingMode: "floor" }))) {
    const instant = toInstant(local, zone);
    if (Temporal.Instant.compare(instant, after) > 0) return isWithinCalendar(instant) ? instant : undefined;
  }
  return undefined;
}

/** The first of two instants, or the moment of the change that skips the local time. */
function toInstant(local: Temporal.PlainDateTime, zone: string): Temporal.Instant {
  const zoned = local.toZonedDateTime(zone, { disambiguation: "compatible" });
  if (zoned.toPlainDateTime().equals(local)) return zoned.toInstant();
  const change = zoned.add({ nanoseconds: 1 }).getTimeZoneTransition("previous");
  return (change ?? zoned).toInstant();
}

/** 29 February on a given weekday is at most 40 years away, the longest interval of any expression. */
const yearsAhead = 40;
const yearMax = 9999;

function* localTimes(fields: Fields, from: Temporal.PlainDateTime): Generator<Temporal.PlainDateTime> {
  const start = from.toPlainDate();
  const end = Math.min(start.year + yearsAhead, yearMax);
  for (let date = start; date.year <= end; date = nextDate(fields, date)) {
    if (!matchesDay(fields, date)) continue;
    for (const hour of fields.hours) {
      for (const minute of fields.minutes) {
        const local = date.toPlainDateTime({ hour, minute });
        if (Temporal.PlainDateTime.compare(local, from) >= 0) yield local;
      }
    }
  }
}

/** The next day, or the first of the next month if this month does not match. */
const nextDate = ({ months }: Fields, date: Temporal.PlainDate): Temporal.PlainDate =>
  months.has(date.month) ? date.add({ days: 1 }) : date.with({ day: 1 }).add({ months: 1 });

function matchesDay(fields: Fields, date: Temporal.PlainDate): boolean {
  if (!fields.months.has(date.month)) return false;
  const ofMonth = fields.days.has(date.day) || (fields.lastDay && date.day === date.daysInMonth);
  const ofWeek = fields.weekdays.has(date.dayOfWeek % 7);
  return fields.eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
}

interface Range {
  readonly unit: string;
  readonly from: number;
  readonly to: number;
  readonly names?: readonly string[];
}

const monthNames = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const dayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const withoutLast = (days: string): string =>
  days
    .split(",")
    .filter((part) => part !== "L")
    .join(",");

/** A field that was `L` alone is empty. */
function parseField(field: string, range: Range): Set<number> {
  return new Set(field === "" ? [] : field.split(",").flatMap((part) => parsePart(part, range)));
}

const partPattern = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d{1,2}))?$/;

function parsePart(part: string, range: Range): number[] {
  const [whole, star, first, last, step] = partPattern.exec(part) ?? [];
  const from = star ? range.from : parseNumber(first, range);
  // A step without an end runs to the end of the range: 5/15 is 5, 20, 35, 50.
  const to = star || (step && !last) ? range.to : last ? parseNumber(last, range) : from;
  const by = Number(step ?? 1);
  if (whole === undefined || from === undefined || to === undefined || from > to || by < 1) {
    throw new CronError(`"${part}" is not a valid ${range.unit} (${range.from} to ${range.to})`);
  }
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, n) => from + n * by);
}

function parseNumber(text: string | undefined, { from, to, names = [] }: Range): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : names.indexOf(text.toUpperCase());
  return number >= from && number <= to ? number : undefined;
}

const sorted = (numbers: ReadonlySet<number>): readonly number[] => [...numbers].sort((a, b) => a - b);
