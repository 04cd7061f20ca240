/** The rows of a JSON array parameter as a FROM item: the columns `types` names, and `ordinal`, counted from 1. */
export function recordsSql(parameter: string, types: Readonly<Record<string, string>>, alias = "r"): string {
  const columns = Object.entries(types).map(([name, type]) => `${name} ${type}`);
  return `rows from (jsonb_to_recordset(${parameter}::jsonb) as (${columns.join(", ")}))
         with ordinality as ${alias}(${[...Object.keys(types), "ordinal"].join(", ")})`;
}
