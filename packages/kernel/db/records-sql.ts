/**
 * A FROM item with the rows of a JSON array parameter. `columns` is a column list ("user_id text, amount bigint"; no type
 * may contain a comma). `ordinal`, counted from 1, is added.
 */
export function recordsSql(parameter: string, columns: string, alias = "r"): string {
  const names = columns.split(",").map((column) => column.trim().split(" ", 1)[0]);
  return `rows from (jsonb_to_recordset(${parameter}::jsonb) as (${columns}))
         with ordinality as ${alias}(${[...names, "ordinal"].join(", ")})`;
}
