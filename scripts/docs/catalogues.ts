/** Reads problems, claimed tables and states from the source, for the pages that list them. An unknown form is an error. */

export interface ProblemEntry {
  readonly code: string;
  readonly status: string;
  readonly title: string;
}

/** Every entry of every problem catalogue in this source text. */
export function problemsIn(source: string): ProblemEntry[] {
  const found = [...source.matchAll(problemDeclaration)].map(([, status = "", code = "", title = ""]) => {
    return { code, status, title };
  });
  const declared = source.match(/[=:] problem\(/g)?.length ?? 0;
  if (found.length < declared)
    throw new Error(`of ${declared} problems, only ${found.length} can be read: ${source.slice(0, 200)}`);
  return found;
}

const problemDeclaration = /[=:] problem\(\s*(\d+),\s*"([^"]+)",\s*"([^"]+)",?\s*\)/g;

export interface TableStates {
  readonly table: string;
  /** Sorted. */
  readonly states: readonly string[];
}

/** Every table that this source text describes to the claim engine. */
export function claimedTablesIn(source: string): TableStates[] {
  return [...source.matchAll(/(?:\bcreateClaims<\w+>\(|Table = )\{\s*table: "(\w+)"([\s\S]*?)\n\}/g)].map(
    ([, table = "", rest = ""]) => {
      const [, states] = /\bstates: \{([^}]*)\}/.exec(rest) ?? [];
      if (states === undefined) throw new Error(`the states of ${table} cannot be read`);
      return { table, states: quoted(states, '"') };
    },
  );
}

/** Tables of a migration whose status column has a check. */
export function statusChecksIn(sql: string): TableStates[] {
  return sql.split(/^create table /m).flatMap((text) => {
    const [, table = ""] = /^(\w+) \(/.exec(text) ?? [];
    const [, states] = /check \(status in \(([^)]*)\)\)/.exec(text) ?? [];
    return states === undefined ? [] : [{ table, states: quoted(states, "'") }];
  });
}

/** The states of a Mermaid state diagram: both ends of arrows, and single declarations. */
export function statesOfDiagram(mermaid: string): string[] {
  const states = new Set<string>();
  for (const line of mermaid.split("\n").slice(1)) {
    const [, from, to, declared] = /^\s*(\S+) --> (\S+)|^\s*(\w+)\s*:/.exec(line) ?? [];
    for (const state of [from, to, declared]) if (state !== undefined && state !== "[*]") states.add(state);
  }
  return [...states].sort();
}

function quoted(list: string, quote: string): string[] {
  return list
    .split(quote)
    .filter((_, index) => index % 2 === 1)
    .sort();
}
