export type Grouped<T> = Map<string, T[]>;

export function groupBy<T>(rows: readonly T[], keyOf: (row: T) => string): Grouped<T> {
  const groups: Grouped<T> = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}
