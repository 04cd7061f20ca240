/** Results as they are kept (results.json) and as people read them (docs/performance.md). */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { barChart } from "./chart.ts";
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
const charts = new URL("../docs/performance/", import.meta.url);

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
  await writePage(after);
}

async function writePage({ about, measures }: Kept): Promise<void> {
  await mkdir(charts, { recursive: true });
  const sections = [introduction(about)];
  for (const [name, { on, results }] of Object.entries(measures)) {
    for (const result of results) {
      const chart = result.figures.length > 0 ? `${name}.svg` : undefined;
      if (chart) await writeFile(new URL(chart, charts), chartOf(result));
      const madeBy = `\`npm run bench -- ${name}\`, ${on}`;
      sections.push(asMarkdown(result, { madeBy, ...(chart && { chart: `performance/${chart}` }) }));
    }
  }
  await writeFile(page, sections.join("\n"));
}

const unit = "per second, median of 3";

const chartOf = ({ title, figures }: Result) =>
  barChart({
    title: sentence(title),
    unit,
    better: "more",
    bars: figures.map(({ name, perSecond: value }) => ({ name, value })),
  });

const sentence = (title: string) => `${title[0]?.toUpperCase()}${title.slice(1)}`;

interface OnPage {
  readonly madeBy: string;
  readonly chart?: string;
}

export function asMarkdown({ title, figures, ratios, wanted = {} }: Result, onPage?: OnPage): string {
  const parts = [`## ${sentence(title)}\n`];
  if (onPage?.chart) parts.push(`![${sentence(title)}: ${unit}; the figures are below](${onPage.chart})\n`);
  if (figures.length > 0) {
    parts.push(`| what | ${unit} | rounds |\n|---|---|---|`);
    for (const { name, perSecond, rounds } of figures) {
      parts.push(
        `| ${name} | ${perSecond.toLocaleString("en")} | ${rounds.map((r) => r.toLocaleString("en")).join(", ")} |`,
      );
    }
    parts.push("");
  }
  const told = (name: string) => (wanted[name] === undefined ? "" : ` (${wanted[name]})`);
  parts.push(...Object.entries(ratios).map(([name, value]) => `- **${name}: ${value}**${told(name)}`), "");
  if (onPage) parts.push(`*${onPage.madeBy}*\n`);
  return parts.join("\n");
}

function introduction({ machine, versions, postgresSettings }: About): string {
  const list = (of: Readonly<Record<string, string | number>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `# Performance

\`npm run bench\` generates this page; the raw rounds are in \`bench/results.json\`. The contenders of a section alternate within one
run, so compare the ratios. Absolute figures vary by 10 to 20 % between runs, and client and servers share the machine.

- Machine: ${list(machine)}
- Engines: ${list(versions)}
- PostgreSQL: fsync, synchronous_commit and full_page_writes on; ${list(postgresSettings)}; all other settings have their defaults
- JetStream acks before it syncs to disk (its default), so its figures do not include durability per message
- Redis appends every change to its file and syncs the file once a second (its default); for the peers it syncs every change
`;
}
