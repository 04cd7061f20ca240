/** The plan of a cached statement, for any parameters. `explain (generic_plan)` would need PostgreSQL 16. */
import type { Queryable } from "../db/index.ts";

export async function genericPlan(db: Queryable, sql: string): Promise<string> {
  const parameters = Math.max(0, ...[...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
  const nulls = parameters > 0 ? `(${Array<string>(parameters).fill("null").join()})` : "";
  const steps = [
    "begin",
    "set local plan_cache_mode = force_generic_plan",
    `prepare generic as ${sql}`,
    `explain execute generic${nulls}`,
    "deallocate generic",
    "commit",
  ];
  // Several statements in one query have a result each; on one connection, which a pool would not promise otherwise.
  const results: unknown = await db.query(steps.join(";\n"));
  const { rows } = (results as { rows: { "QUERY PLAN": string }[] }[])[3] ?? { rows: [] };
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}
