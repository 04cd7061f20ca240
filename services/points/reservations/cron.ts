/**
 * When a recurring grant comes round: five fields (minute, hour, day of the month, month, day of the week), read on the
 * wall clock of a time zone.
 *
 *  - `*`, numbers, ranges `1-5`, steps of them, lists, JAN to DEC, SUN to SAT (7 is Sunday too), and `L`, the last day of
 *    the month. A day that a month does not have is passed over: 31 comes seven times a year, 29 2 in leap years only.
 *  - Where both days are said, one of the two is enough, as in every cron.
 *  - A time that the clock jumps over (summer begins) comes at the moment of the jump; one that comes twice (summer ends)
 *    counts the first time. So what is to come at even intervals is best put in UTC.
 */
import { isWithinCalendar } from "./instant.ts";

export interface Cron {
  /** The first occurrence after this, to the minute; undefined when there is none up to the year 9999. */
  next(after: Temporal.Instant): Temporal.Instant | undefined;
}

/** Says what is wrong, in words for whoever wrote it. */
export class CronFault extends Error {
  override readonly name = "CronFault";
}

interface Fields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly lastDay: boolean;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** Both days are said: one of them is enough. */
  readonly eitherDay: boolean;
}

const textMax = 200;

export function parseCron(text: string, timeZone: string): Cron {
  const parts = text.trim().split(/\s+/);
  if (text.length > textMax || parts.length !== 5) {
    throw new CronFault("cron must have five fields: minute, hour, day of the month, month, day of the week");
  }
  const [minute, hour, day, month, weekday] = parts as [string, string, string, string, string];
  const lastDay = day.split(",").includes("L");
  const fields: Fields = {
    minutes: ordered(numbersOf(minute, { name: "minute", from: 0, to: 59 })),
    hours: ordered(numbersOf(hour, { name: "hour", from: 0, to: 23 })),
    days: numbersOf(withoutLast(day), { name: "day of the month", from: 1, to: 31 }),
    lastDay,
    months: numbersOf(month, { name: "month", from: 1, to: 12, words: monthNames }),
    weekdays: new Set(
      [...numbersOf(weekday, { name: "day of the week", from: 0, to: 7, words: dayNames })].map((n) => n % 7),
    ),
    eitherDay: !day.startsWith("*") && !weekday.startsWith("*"),
  };
  const zone = knownZone(timeZone);
  if (!localTimes(fields, firstOfALeapCycle).next().value) throw new CronFault(`cron "${text}" never comes round`);
  return { next: (after) => nextIn(fields, zone, after) };
}

const firstOfALeapCycle = Temporal.PlainDateTime.from("2000-01-01T00:00");

function knownZone(timeZone: string): string {
  try {
    // An offset such as +09:00 is no zone: it has no summers, and nobody can look it up.
    if (!/^[A-Za-z][\w+\-/]{1,63}$/.test(timeZone)) throw new RangeError(timeZone);
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(timeZone).timeZoneId;
  } catch {
    throw new CronFault("time_zone must be the name of a time zone, such as Asia/Tokyo or UTC");
  }
}

function nextIn(fields: Fields, zone: string, after: Temporal.Instant): Temporal.Instant | undefined {
  const from = after.toZonedDateTimeISO(zone).toPlainDateTime();
  // Local times in their order are instants in theirs, so the first that lies after is the next. Those before it are of an
  // hour that comes twice.
  for (const local of localTimes(fields, from.round({ smallestUnit: "minute", roundingMode: "floor" }))) {
    const instant = instantOf(local, zone);
    if (Temporal.Instant.compare(instant, after) > 0) return isWithinCalendar(instant) ? instant : undefined;
  }
  return undefined;
}

/** The first of two, or the moment of the jump over it. */
function instantOf(local: Temporal.PlainDateTime, zone: string): Temporal.Instant {
  const zoned = local.toZonedDateTime(zone, { disambiguation: "compatible" });
  if (zoned.toPlainDateTime().equals(local)) return zoned.toInstant();
  const jump = zoned.add({ nanoseconds: 1 }).getTimeZoneTransition("previous");
  return (jump ?? zoned).toInstant();
}

/** 29 February on one day of the week is up to forty years away; whatever has not come by then never will. */
const yearsAhead = 40;
const yearMax = 9999;

function* localTimes(fields: Fields, from: Temporal.PlainDateTime): Generator<Temporal.PlainDateTime> {
  const start = from.toPlainDate();
  const end = Math.min(start.year + yearsAhead, yearMax);
  for (let date = start; date.year <= end; date = following(fields, date)) {
    if (!isDay(fields, date)) continue;
    for (const hour of fields.hours) {
      for (const minute of fields.minutes) {
        const local = date.toPlainDateTime({ hour, minute });
        if (Temporal.PlainDateTime.compare(local, from) >= 0) yield local;
      }
    }
  }
}

/** The next day, or the first of the next month where none of this one can be meant. */
const following = ({ months }: Fields, date: Temporal.PlainDate): Temporal.PlainDate =>
  months.has(date.month) ? date.add({ days: 1 }) : date.with({ day: 1 }).add({ months: 1 });

function isDay(fields: Fields, date: Temporal.PlainDate): boolean {
  if (!fields.months.has(date.month)) return false;
  const ofMonth = fields.days.has(date.day) || (fields.lastDay && date.day === date.daysInMonth);
  const ofWeek = fields.weekdays.has(date.dayOfWeek % 7);
  return fields.eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
}

interface Range {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly words?: readonly string[];
}

const monthNames = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const dayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const withoutLast = (days: string): string =>
  days
    .split(",")
    .filter((part) => part !== "L")
    .join(",");

/** An empty field is one that was `L` alone. */
function numbersOf(field: string, range: Range): Set<number> {
  return new Set(field === "" ? [] : field.split(",").flatMap((part) => partOf(part, range)));
}

const partForm = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d{1,2}))?$/;

function partOf(part: string, range: Range): number[] {
  const [whole, star, first, last, step] = partForm.exec(part) ?? [];
  const from = star ? range.from : numberOf(first, range);
  // A step without an end goes on to the end: 5/15 is 5, 20, 35, 50.
  const to = star || (step && !last) ? range.to : last ? numberOf(last, range) : from;
  const by = Number(step ?? 1);
  if (whole === undefined || from === undefined || to === undefined || from > to || by < 1) {
    throw new CronFault(`"${part}" is no ${range.name} from ${range.from} to ${range.to}`);
  }
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, n) => from + n * by);
}

function numberOf(text: string | undefined, { from, to, words = [] }: Range): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : words.indexOf(text.toUpperCase());
  return number >= from && number <= to ? number : undefined;
}

const ordered = (numbers: ReadonlySet<number>): readonly number[] => [...numbers].sort((a, b) => a - b);
