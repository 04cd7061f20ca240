/** The dead letters of a service by table and error, for the overview of all services. */
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";
import { countMax } from "./start-dead-letter-batch.ts";

export interface GroupsRequest {
  readonly service: string;
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
}

/** Of each table, the groups cover the oldest rows, up to the bound of the count. */
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
