/** Dependencies of the routes for staff. */
import { type Authenticate, type HttpApp, problems } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { DeadLetters } from "@todoke/kernel/dead-letters";

export interface StaffRouteDeps {
  readonly app: HttpApp;
  readonly authenticate: Authenticate;
  /** The beginning of every path. */
  readonly prefix: string;
  /** Leaves the routes out of the API document. */
  readonly hide: boolean;
  readonly service: string;
  readonly db: Db;
  /** For reads: a few connections, so that an open console does not take those of commands. */
  readonly reads: Db;
  readonly deadLetters: readonly DeadLetters[];
  /** Wakes the workers of a table. */
  readonly onChanged: (table: string) => void;
  readonly wakeBatches: () => void;
}

export const viewers = { staff: "VIEWER" } as const;
export const operators = { staff: "OPERATOR" } as const;

export function findTable(
  { service, deadLetters }: Pick<StaffRouteDeps, "service" | "deadLetters">,
  name: string,
): DeadLetters {
  const table = deadLetters.find((each) => each.name === name);
  if (table) return table;
  const known = deadLetters.map((each) => each.name).join(", ");
  throw problems.notFound(`${name} has no dead letters in ${service}; the tables are ${known}`);
}
