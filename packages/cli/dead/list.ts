/** `todoke dead list`: pages of dead letters per table, oldest first. */
import type { DeadLetter } from "@todoke/kernel/dead-letters";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { print } from "../output.ts";
import { parseLimit } from "../paging.ts";
import { selectServices } from "../select-services.ts";
import { formatDeadLetters } from "./format.ts";
import { withDeadLetters } from "./with-dead-letters.ts";

interface Page {
  readonly service: string;
  readonly table: string;
  readonly rows: readonly DeadLetter[];
  /** The cursor of the next page, if there is one. */
  readonly next: string | undefined;
}

export async function list({ services, args, env, values, switches }: Invocation): Promise<number> {
  const limit = parseLimit(values);
  const { table, after } = values;
  if (after !== undefined && !/^[1-9]\d{0,17}$/.test(after))
    throw new UsageError("--after is the number at the end of the previous page.");
  if (after !== undefined && (table === undefined || args.length !== 1))
    throw new UsageError("--after needs one service and --table.");
  const pages: Page[] = [];
  for (const entry of selectServices(services, args, env)) {
    const ofService = await withDeadLetters({ entry, env, table }, async ({ service, db, tables }) => {
      const read: Page[] = [];
      for (const each of tables) {
        const found = await each.list(db, { limit: limit + 1, ...(after && { after }), ...parseFilter(values) });
        const rows = found.slice(0, limit);
        read.push({ service, table: each.name, rows, next: found.length > limit ? rows.at(-1)?.cursor : undefined });
      }
      return read;
    });
    pages.push(...ofService);
  }
  if (switches.has("json")) print(JSON.stringify(toJson(pages), null, 2));
  else show(pages);
  return 0;
}

/** --type, --error and --user. */
export const parseFilter = ({ type, error, user }: Invocation["values"]) => ({
  ...(type !== undefined && { eventType: type }),
  ...(error !== undefined && { error }),
  ...(user !== undefined && { user }),
});

const toJson = (pages: readonly Page[]) => ({
  dead: pages.flatMap(({ service, table, rows }) => rows.map(({ cursor: _, ...row }) => ({ service, table, ...row }))),
  next: pages.flatMap(({ service, table, next }) => (next === undefined ? [] : [{ service, table, after: next }])),
});

function show(pages: readonly Page[]): void {
  const filled = pages.filter(({ rows }) => rows.length > 0);
  if (filled.length === 0) print("There are no dead letters.");
  for (const { service, table, rows, next } of filled) {
    print(`${service} ${table}`);
    print(formatDeadLetters(rows));
    if (next !== undefined) print(`  Next page: todoke dead list ${service} --table ${table} --after ${next}`);
  }
}
