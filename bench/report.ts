/** Stores results in results.json and renders them as docs/performance.md. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { barChart } from "./chart.ts";
import type { Figure } from "./measure.ts";

export interface Result {
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Ratios between figures, or times in milliseconds, by label. */
  readonly summary: Readonly<Record<string, number>>;
  /** Targets for entries of the summary, set before the measurement. */
  readonly targets?: Readonly<Record<string, string>>;
}

interface Environment {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly postgresSettings: Readonly<Record<string, string>>;
}

/** Results of one run; ratios hold within it only. */
interface BenchmarkRun {
  readonly date: string;
  readonly results: readonly Result[];
}

interface StoredResults {
  readonly environment: Environment;
  readonly benchmarks: Readonly<Record<string, BenchmarkRun>>;
}

const resultsFile = new URL("./results.json", import.meta.url);
const pageFile = new URL("../docs/performance.md", import.meta.url);
const chartFolder = new URL("../docs/performance/", import.meta.url);

export const readResults = async (): Promise<StoredResults> => JSON.parse(await readFile(resultsFile, "utf8"));

/** Replaces the results of one benchmark. `order` is the order of sections on the page. */
export async function saveResults({
  environment,
  name,
  results,
  order,
}: {
  environment: Environment;
  name: string;
  results: readonly Result[];
  order: readonly string[];
}): Promise<void> {
  const before = await readResults();
  const benchmarks = { ...before.benchmarks, [name]: { date: new Date().toISOString().slice(0, 10), results } };
  const after: StoredResults = {
    environment: { ...environment, versions: { ...before.environment.versions, ...environment.versions } },
    benchmarks: Object.fromEntries(order.flatMap((each) => (benchmarks[each] ? [[each, benchmarks[each]]] : []))),
  };
  await writeFile(resultsFile, `${JSON.stringify(after, null, 2)}\n`);
  await writePage(after);
}

async function writePage(stored: StoredResults): Promise<void> {
  await mkdir(chartFolder, { recursive: true });
  for (const [name, { results }] of Object.entries(stored.benchmarks))
    for (const result of results)
      if (result.figures.length > 0) await writeFile(new URL(`${name}.svg`, chartFolder), renderChart(result));
  await writeFile(pageFile, renderPage(stored));
}

export function renderPage({ environment, benchmarks }: StoredResults): string {
  const sections = Object.entries(benchmarks).flatMap(([name, { date, results }]) =>
    results.map((result) => {
      const command = `\`npm run bench -- ${name}\`, ${date}`;
      return renderResult(result, {
        command,
        ...(result.figures.length > 0 && { chart: `performance/${name}.svg` }),
      });
    }),
  );
  return [renderIntroduction(environment), ...sections].join("\n");
}

const unit = "per second, median of 3";

const renderChart = ({ title, figures }: Result) =>
  barChart({
    title: capitalize(title),
    unit,
    better: "more",
    bars: figures.map(({ name, perSecond: value }) => ({ name, value })),
  });

const capitalize = (title: string) => `${title[0]?.toUpperCase()}${title.slice(1)}`;

interface PagePlacement {
  readonly command: string;
  readonly chart?: string;
}

export function renderResult({ title, figures, summary, targets = {} }: Result, placement?: PagePlacement): string {
  const parts = [`## ${capitalize(title)}\n`];
  if (placement?.chart)
    parts.push(`![${capitalize(title)}: ${unit}; the table below has the figures](${placement.chart})\n`);
  if (figures.length > 0) {
    parts.push(`| contender | ${unit} | rounds |\n|---|---|---|`);
    for (const { name, perSecond, rounds } of figures) {
      parts.push(
        `| ${name} | ${perSecond.toLocaleString("en")} | ${rounds.map((r) => r.toLocaleString("en")).join(", ")} |`,
      );
    }
    parts.push("");
  }
  const target = (name: string) => (targets[name] === undefined ? "" : ` (target: ${targets[name]})`);
  parts.push(...Object.entries(summary).map(([name, value]) => `- **${name}: ${value}**${target(name)}`), "");
  if (placement) parts.push(`*${placement.command}*\n`);
  return parts.join("\n");
}

function renderIntroduction({ machine, versions, postgresSettings }: Environment): string {
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
- Redis appends every change to its file and syncs the file once a second (its default); in the comparison with peers it syncs every change
`;
}
