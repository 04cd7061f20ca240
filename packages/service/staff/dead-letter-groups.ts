/** The dead letters of a service by table and error, for the overview of all services. */
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { countMax } from "./start-dead-letter-batch.ts";

export interface GroupsRequest {
  readonly service: string;
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
}

/** The groups of a table cover its oldest rows, up to `countMax`. */
export async function readDeadLetterGroups({ service, reads, deadLetters }: GroupsRequest) {
  const tables = await Promise.all(
    deadLetters.map(async (each) => {
      const groups = await each.group(reads, countMax);
      const dead = await each.count(reads, countMax + 1);
      const where = { service, table: each.name };
      return {
        table: { ...where, dead: Math.min(dead, countMax), capped: dead > countMax },
        groups: groups.map((group) => ({ ...where, ...group })),
      };
    }),
  );
  return {
    groups: tables.flatMap(({ groups }) => groups).sort((a, b) => b.count - a.count),
    tables: tables.map(({ table }) => table),
  };
}
