/** Finds statements of a migration that a process of the previous release may not survive (docs/guides/rolling-deploys.md). */

const contracting: readonly (readonly [form: RegExp, what: string])[] = [
  [/\bdrop\s+(table|column|view|function|procedure|schema|type|sequence)\b/, "drops what the previous release may use"],
  [/\brename\s+(to|column|constraint)\b/, "renames what the previous release may use"],
  [/\balter\s+(column\s+)?\w+\s+(set\s+data\s+)?type\b/, "changes the type of a column"],
  [/\bset\s+not\s+null\b/, "makes a column not null, which the previous release may leave empty"],
  [
    /\badd\s+(?!constraint)(?![^,;]*\b(?:default|generated)\b)[^,;]*\bnot\s+null\b/,
    "adds a column that is not null and has no default",
  ],
  [
    /\badd\s+constraint\b(?![^;]*\bnot\s+valid\b)(?![^;]*\busing\s+index\b)/,
    "adds a constraint that the previous release may violate",
  ],
  [/\bcreate\s+unique\s+index\b/, "adds a unique index that the previous release may violate"],
];

/** A file may say that it is the second half of a change: `-- contract: 0.2.0 <why nothing uses it since>`. */
const contractMark = /^-- contract: (\d+\.\d+\.\d+) \S/m;

/** The version since which nothing uses what this migration removes. */
export const contractVersionOf = (sql: string): string | undefined => contractMark.exec(sql)?.[1];

/** One phrase per fault; none of a file that creates only new tables. */
export function findContractions(sql: string): string[] {
  const code = sql
    .replace(/--.*$/gm, "")
    .replace(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''") // the bodies of functions
    .toLowerCase();
  const created = new Set(
    [...code.matchAll(/create\s+table\s+(?:if\s+not\s+exists\s+)?(\w+)/g)].map(([, name]) => name),
  );
  // A table of this migration is unknown to the previous release.
  const statements = code.split(";").filter((statement) => {
    const on = /\b(?:alter\s+table\s+(?:only\s+)?|\bon\s+)(\w+)/.exec(statement)?.[1];
    return on === undefined || !created.has(on);
  });
  return statements.flatMap((statement) =>
    contracting.filter(([form]) => form.test(`${statement};`)).map(([, what]) => what),
  );
}
