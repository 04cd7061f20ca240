/** `todoke dead list`: pages of what was given up, oldest first, of each table apart. */
import type { DeadLetter } from "@todoke/kernel/dead-letters";
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { say } from "../output.ts";
import { onDead } from "./open.ts";
import { rowsTable } from "./print.ts";

const limitUsual = 50;
const limitMax = 1_000;

interface Page {
  readonly service: string;
  readonly table: string;
  readonly rows: readonly DeadLetter[];
  /** The cursor of the next page, where there is one. */
  readonly next: string | undefined;
}

export async function list({ services, names, env, values, switches }: Call): Promise<number> {
  const limit = limitOf(values.limit);
  const { table, after } = values;
  if (after !== undefined && !/^[1-9]\d{0,17}$/.test(after))
    throw new Misused("--after is a number: the page before ends with it.");
  if (after !== undefined && (table === undefined || names.length !== 1))
    throw new Misused("A next page is one of one table: name the service and --table.");
  const pages: Page[] = [];
  for (const entry of chosen(services, names)) {
    const ofService = await onDead({ entry, env, table }, async ({ service, db, tables }) => {
      const read: Page[] = [];
      for (const each of tables) {
        const found = await each.list(db, { limit: limit + 1, ...(after && { after }), ...filterOf(values) });
        const rows = found.slice(0, limit);
        read.push({ service, table: each.name, rows, next: found.length > limit ? rows.at(-1)?.cursor : undefined });
      }
      return read;
    });
    pages.push(...ofService);
  }
  if (switches.has("json")) say(JSON.stringify(asJson(pages), null, 2));
  else show(pages);
  return 0;
}

/** What a page leaves out: rows of other types, and those with another error. */
export const filterOf = ({ type, error }: Call["values"]) => ({
  ...(type !== undefined && { eventType: type }),
  ...(error !== undefined && { error }),
});

function limitOf(given: string | undefined): number {
  const limit = Number(given ?? limitUsual);
  if (Number.isInteger(limit) && limit >= 1 && limit <= limitMax) return limit;
  throw new Misused(`--limit is a number from 1 to ${limitMax}.`);
}

const asJson = (pages: readonly Page[]) => ({
  dead: pages.flatMap(({ service, table, rows }) => rows.map(({ cursor: _, ...row }) => ({ service, table, ...row }))),
  next: pages.flatMap(({ service, table, next }) => (next === undefined ? [] : [{ service, table, after: next }])),
});

function show(pages: readonly Page[]): void {
  const filled = pages.filter(({ rows }) => rows.length > 0);
  if (filled.length === 0) say("Nothing: no row is dead.");
  for (const { service, table, rows, next } of filled) {
    say(`${service} ${table}`);
    say(rowsTable(rows));
    if (next !== undefined) say(`  More: todoke dead list ${service} --table ${table} --after ${next}`);
  }
}
