/**
 * The rows of a JSON array parameter as a FROM item: `columns` ("user_id text, amount bigint"; no type with a comma), and
 * `ordinal`, counted from 1.
 */
export function recordsSql(parameter: string, columns: string, alias = "r"): string {
  const names = columns.split(",").map((column) => column.trim().split(" ", 1)[0]);
  return `rows from (jsonb_to_recordset(${parameter}::jsonb) as (${columns}))
         with ordinality as ${alias}(${[...names, "ordinal"].join(", ")})`;
}
