/** Results as they are kept (results.json) and as people read them (docs/performance.md). */
import { readFile, writeFile } from "node:fs/promises";
import type { Figure } from "./measure.ts";

export interface Result {
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly ratios: Readonly<Record<string, number>>;
  /** What a ratio should be, where that was said before it was measured. */
  readonly wanted?: Readonly<Record<string, string>>;
}

interface About {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly postgresSettings: Readonly<Record<string, string>>;
}

/** What was measured together, by turns, in one run: ratios are true only within it. */
interface Measured {
  readonly on: string;
  readonly results: readonly Result[];
}

interface Kept {
  readonly about: About;
  readonly measures: Readonly<Record<string, Measured>>;
}

const kept = new URL("./results.json", import.meta.url);
const page = new URL("../docs/performance.md", import.meta.url);

/** Puts what one measure found in the place of what it found before. `order` is that of the page. */
export async function keep({
  about,
  name,
  results,
  order,
}: {
  about: About;
  name: string;
  results: readonly Result[];
  order: readonly string[];
}): Promise<void> {
  const before = JSON.parse(await readFile(kept, "utf8")) as Kept;
  const measures = { ...before.measures, [name]: { on: new Date().toISOString().slice(0, 10), results } };
  const after: Kept = {
    about: { ...about, versions: { ...before.about.versions, ...about.versions } },
    measures: Object.fromEntries(order.flatMap((each) => (measures[each] ? [[each, measures[each]]] : []))),
  };
  await writeFile(kept, `${JSON.stringify(after, null, 2)}\n`);
  await writeFile(page, pageOf(after));
}

function pageOf({ about, measures }: Kept): string {
  const sections = Object.entries(measures).flatMap(([name, { on, results }]) =>
    results.map((result) => asMarkdown(result, `\`npm run bench -- ${name}\`, ${on}`)),
  );
  return [introduction(about), ...sections].join("\n");
}

export function asMarkdown({ title, figures, ratios, wanted = {} }: Result, madeBy?: string): string {
  const parts = [`## ${title[0]?.toUpperCase()}${title.slice(1)}\n`];
  if (figures.length > 0) {
    parts.push("| what | per second, median of 3 | rounds |\n|---|---|---|");
    for (const { name, perSecond, rounds } of figures) {
      parts.push(
        `| ${name} | ${perSecond.toLocaleString("en")} | ${rounds.map((r) => r.toLocaleString("en")).join(", ")} |`,
      );
    }
    parts.push("");
  }
  const told = (name: string) => (wanted[name] === undefined ? "" : ` (${wanted[name]})`);
  parts.push(...Object.entries(ratios).map(([name, value]) => `- **${name}: ${value}**${told(name)}`), "");
  if (madeBy !== undefined) parts.push(`*${madeBy}*\n`);
  return parts.join("\n");
}

function introduction({ machine, versions, postgresSettings }: About): string {
  const list = (of: Readonly<Record<string, string | number>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `# Performance

Made by \`npm run bench\`; the raw rounds are in \`bench/results.json\`. The contenders of a section run by turns in one
run, so compare the ratios: absolute figures move by 10 to 20 % from run to run, and client and servers share the machine.

- Machine: ${list(machine)}
- Engines: ${list(versions)}
- PostgreSQL: fsync, synchronous_commit and full_page_writes on; ${list(postgresSettings)}; the rest as it comes
- JetStream acknowledges before it syncs to disk (its default), so its figures are not durable per message
`;
}
