/** Parts of sentences. */
import type { TimelineEntry } from "./explanation.ts";

const nouns: Readonly<Record<string, string>> = {
  attempt: "event",
  cancel: "cancel of the order",
  commit: "change",
  dead: "dead letter",
  published: "event",
  processed: "event",
  request: "request with the key",
  sent: "notification",
};

/** "The notification 0199…" */
export function nameOf({ kind, id, service, state }: TimelineEntry): string {
  const of = kind === "dead" && state !== "FAILED" ? ` of ${service}` : kind === "attempt" ? ` at ${service}` : "";
  return `The ${nouns[kind] ?? kind} ${id}${of}`;
}

export const short = (time: string) => `${time.slice(0, 19)}Z`;

export const since = (time: string | null): string => (time === null ? "" : ` since ${short(time)}`);

export const on = (time: string | null): string => (time === null ? "at an unknown time" : `at ${short(time)}`);

/** Rows of finished work are kept this long by default (EVENT_REDRIVE_DAYS, <SERVICE>_OUTBOX_KEEP_DAYS). */
const keptMs = 7 * 24 * 60 * 60 * 1_000;
const firstMs = Date.UTC(2020, 0);

/** The time in an id that begins with one: a UUID v7, or a trace id of ours. */
export function describeAge(
  id: string,
  now = Date.now(),
): { readonly made: string | undefined; readonly isOld: boolean } {
  const isV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id);
  const digits = isV7 || /^[0-9a-f]{32}$/i.test(id) ? id.replaceAll("-", "").slice(0, 12) : "";
  const ms = digits === "" ? Number.NaN : Number.parseInt(digits, 16);
  // Random digits give times far outside the life of the product.
  if (Number.isNaN(ms) || ms < firstMs || ms > now + keptMs) return { made: undefined, isOld: false };
  return { made: short(new Date(ms).toISOString()), isOld: ms < now - keptMs };
}
