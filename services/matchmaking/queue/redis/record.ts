/**
 * Puts ends from the stream on record in PostgreSQL, and strikes them off.
 *
 * PostgreSQL first, then Redis: whoever dies in between leaves ends that are recorded again, which changes nothing. What
 * PostgreSQL says holds, whatever Redis has forgotten or taken back: a ticket that has ended there is over, and a match
 * that would need it did not come about; its other tickets wait on.
 */
import { type Db, sqlStateOf } from "@todoke/kernel/db";
import type { Outbox } from "@todoke/kernel/outbox";
import type { RedisLink } from "@todoke/redis";
import { endingTickets, type Recorded, type RecordedEnd, recordEnds } from "../../store/ends.ts";
import type { TicketEnd } from "../../tickets.ts";
import { type Entry, unreadable } from "./kept.ts";
import { strikeOff } from "./recorder-scripts.ts";
import { keysOf } from "./words.ts";

export interface RecordOptions {
  readonly link: RedisLink;
  readonly db: Db;
  readonly outbox: Outbox;
  /** What the keys begin with: services that share a Redis and no tickets have a place each. */
  readonly place?: string;
  /** Hears of every end that was looked at, and what PostgreSQL made of it; after a failure, of the same ones again. */
  readonly onRecorded?: (ends: readonly RecordedEnd[]) => void;
}

export const defaultPlace = "mm";

export interface Batch {
  readonly mode: string;
  /** At most `endsMax`. */
  readonly entries: readonly Entry[];
}

/** What became of each, in its place, and how many tickets wait again because of it. */
export async function recordEntries(options: RecordOptions, { mode, entries }: Batch) {
  const { link, place = defaultPlace, onRecorded } = options;
  const recorded = await recordAll(options, { mode, entries });
  onRecorded?.(recorded);
  const verdicts = entries.map((entry, at) => verdictOf(entry, recorded[at]?.recorded));
  const input = { keys: keysOf(place, mode), arguments: [JSON.stringify(verdicts)] };
  return { recorded, givenBack: Number(await link.run(strikeOff, input)) };
}

async function recordAll(options: RecordOptions, { mode, entries }: Batch): Promise<readonly RecordedEnd[]> {
  const { db, outbox } = options;
  const record = async (ends: readonly TicketEnd[]): Promise<readonly RecordedEnd[]> => {
    const results = await endingTickets(db, (tx) => recordEnds(tx, ends, { outbox }));
    return ends.map((end, at) => ({ end, recorded: results[at] as Recorded }));
  };
  try {
    return await record(entries.map((entry) => entry.end));
  } catch (error) {
    if (!isUnfit(error)) throw error;
    // One that PostgreSQL cannot keep must not hold up the others for ever: it is found, and set aside.
    const [only, ...others] = entries;
    if (only && others.length === 0) return record([unreadable({ mode, id: only.id, words: only.end }, error)]);
    const all: RecordedEnd[] = [];
    for (const entry of entries) all.push(...(await recordAll(options, { mode, entries: [entry] })));
    return all;
  }
}

/** PostgreSQL refuses what it was given, and will tomorrow: a value that it cannot hold, a constraint that it breaks. */
function isUnfit(error: unknown): boolean {
  const state = sqlStateOf(error) ?? "";
  return (state.startsWith("22") || state.startsWith("23")) && state !== "23505";
}

function verdictOf({ id, end, ticketIds }: Entry, recorded: Recorded | undefined) {
  const isOver = (ticketId: string) => recorded?.kind !== "void" || recorded.ended.has(ticketId);
  return {
    entry: id,
    match: end.kind === "match" ? end.match.matchId : "",
    over: ticketIds.filter(isOver),
    free: ticketIds.filter((ticketId) => !isOver(ticketId)),
  };
}
