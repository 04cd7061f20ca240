/** `todoke dead show`: one row whole, with everybody who redrove it. */
import type { DeadLetterDetail, DeadLetters } from "@todoke/kernel/dead-letters";
import { chosen } from "../choice.ts";
import type { Call } from "../command.ts";
import { CommandFailed, Misused } from "../faults.ts";
import { say } from "../output.ts";
import type { ServiceEntry } from "../services.ts";
import { type DeadOf, onDead } from "./open.ts";
import { fields, redriveLine } from "./print.ts";

export async function show({ services, names, env, switches }: Call): Promise<number> {
  const { entry, ids } = serviceAndIds(services, names);
  const [id] = ids;
  if (id === undefined || ids.length > 1) throw new Misused("Say which one: a service and one id.");
  const { table, row } = await onDead({ entry, env }, (dead) => find(dead, id));
  if (switches.has("json")) say(JSON.stringify({ service: entry.name, table: table.name, ...row }, null, 2));
  else print(`${entry.name} ${table.name}`, row);
  return 0;
}

function print(title: string, { redrives, ...row }: DeadLetterDetail): void {
  say(`${title}\n${fields(row)}`);
  say(redrives.length > 0 ? `Redriven, newest first:\n${redrives.map(redriveLine).join("\n")}` : "Never redriven.");
}

/** One service, and what else was named. */
export function serviceAndIds(services: readonly ServiceEntry[], [service, ...ids]: readonly string[]) {
  if (service === undefined) throw new Misused("Say of which service.");
  const [entry] = chosen(services, [service]);
  return { entry: entry as ServiceEntry, ids };
}

export interface Found {
  readonly table: DeadLetters;
  readonly row: DeadLetterDetail;
}

/** An id is a UUID or a number, and of one table: which one need not be said. */
export async function find({ service, db, tables }: DeadOf, id: string): Promise<Found> {
  for (const table of tables.filter((each) => each.isId(id))) {
    const row = await table.show(db, id);
    if (row) return { table, row };
  }
  throw new CommandFailed(`${service} has nothing under ${id}. \`todoke dead list ${service}\` says what there is.`);
}
