/** `todoke dead show`: one dead letter with its payload and its redrives. */
import type { DeadLetterDetail, DeadLetters, DiscardedLetter } from "@todoke/kernel/dead-letters";
import type { Invocation } from "../command.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { print } from "../output.ts";
import { selectService } from "../select-services.ts";
import type { ServiceEntry } from "../services.ts";
import { formatFields, formatRedriveRecord } from "./format.ts";
import { type ServiceDeadLetters, withDeadLetters } from "./with-dead-letters.ts";

export async function show({ services, args, env, switches }: Invocation): Promise<number> {
  const { entry, ids } = parseServiceAndIds(services, args);
  const [id] = ids;
  if (id === undefined || ids.length > 1) throw new UsageError("Name a service and one id.");
  const found = await withDeadLetters({ entry, env }, async (dead) => {
    const discarded = await findDiscarded(dead, id);
    return discarded ?? findDeadLetter(dead, id);
  });
  const { table, row } = found;
  if (switches.has("json")) print(JSON.stringify({ service: entry.name, table: table.name, ...row }, null, 2));
  else printDeadLetter(`${entry.name} ${table.name}`, row);
  return 0;
}

function printDeadLetter(title: string, { redrives, ...row }: DeadLetterDetail | DiscardedLetter): void {
  print(`${title}${"discarded_at" in row ? ", discarded" : ""}\n${formatFields(row)}`);
  print(
    redrives.length > 0
      ? `Redriven, newest first:\n${redrives.map(formatRedriveRecord).join("\n")}`
      : "Never redriven.",
  );
}

export function parseServiceAndIds(services: readonly ServiceEntry[], [service, ...ids]: readonly string[]) {
  if (service === undefined) throw new UsageError("Name the service.");
  return { entry: selectService(services, service), ids };
}

export interface FoundDeadLetter {
  readonly table: DeadLetters;
  readonly row: DeadLetterDetail;
}

async function findDiscarded({ db, tables }: ServiceDeadLetters, id: string) {
  for (const table of tables.filter((each) => each.isId(id))) {
    const row = await table.showDiscarded(db, id);
    if (row) return { table, row };
  }
  return undefined;
}

/** The format of an id (UUID or number) limits the tables to search. */
export async function findDeadLetter(
  { service, db, tables }: ServiceDeadLetters,
  id: string,
): Promise<FoundDeadLetter> {
  for (const table of tables.filter((each) => each.isId(id))) {
    const row = await table.show(db, id);
    if (row) return { table, row };
  }
  throw new CommandFailed(`${service} has no dead letter ${id}. \`todoke dead list ${service}\` lists them.`);
}
