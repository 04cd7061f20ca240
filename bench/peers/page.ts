/** Renders docs/performance/peers.md with its charts, and computes the ratios. */
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { barChart } from "../chart.ts";
import type { machine } from "../measure.ts";
import { type ContenderName, contenderNames, getContender, isOurs } from "./contenders.ts";
import type { Comparison, PeerFigure, Size } from "./rounds.ts";

export interface PeersEnvironment {
  readonly date: string;
  readonly machine: ReturnType<typeof machine>;
  readonly versions: Readonly<Record<string, string>>;
  readonly size: Size;
}

export interface PeersResult {
  readonly environment: PeersEnvironment;
  readonly contenders: Readonly<Record<string, { settings: string; notGuaranteed: string }>>;
  readonly comparisons: readonly Comparison[];
  readonly ratios: Readonly<Record<string, number>>;
}

/** Installed versions by package. */
export function packageVersions(): Record<string, string> {
  const packages = new Set(contenderNames.flatMap((name) => getContender(name).package ?? []));
  return Object.fromEntries([...packages].map((name) => [name, installedVersion(name)]));
}

function installedVersion(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

export function toResult(environment: PeersEnvironment, comparisons: readonly Comparison[]): PeersResult {
  const described = contenderNames.map((name) => {
    const { settings, notGuaranteed } = getContender(name);
    return [name, { settings, notGuaranteed }] as const;
  });
  return { environment, contenders: Object.fromEntries(described), comparisons, ratios: computeRatios(comparisons) };
}

/** Ours divided by the best peer: above 1 is ahead if more is better, below 1 if less is better. */
export function computeRatios(comparisons: readonly Comparison[]): Record<string, number> {
  const median = (key: string, name: ContenderName) =>
    comparisons.find((comparison) => comparison.key === key)?.figures.find((figure) => figure.name === name)?.median ??
    Number.NaN;
  const ratio = (over: number, under: number) => Math.round((over / under) * 100) / 100;
  return {
    "drain / fastest peer": ratio(median("drain", "Todoke, jobs table"), bestPeer(comparisons, "drain")),
    "enqueue / pg-boss": ratio(median("enqueue", "Todoke, jobs table"), median("enqueue", "pg-boss")),
    "enqueue / pg-boss, notify off": ratio(
      median("enqueue", "Todoke, jobs table"),
      median("enqueue", "pg-boss, notify off"),
    ),
    "outbox append / pg-transactional-outbox": ratio(
      median("enqueue", "Todoke, outbox"),
      median("enqueue", "pg-transactional-outbox"),
    ),
    "pick-up when idle / best peer (less is better)": ratio(
      median("pick-up-idle", "Todoke, jobs table"),
      bestPeer(comparisons, "pick-up-idle"),
    ),
    "pick-up when idle, from the commit / best peer (less is better)": ratio(
      median("pick-up-from-commit", "Todoke, jobs table"),
      bestPeer(comparisons, "pick-up-from-commit"),
    ),
  };
}

function bestPeer(comparisons: readonly Comparison[], key: string): number {
  const comparison = comparisons.find((each) => each.key === key);
  const peers = comparison?.figures.filter(({ name }) => !isOurs(name)).map((figure) => figure.median) ?? [];
  return comparison?.better === "less" ? Math.min(...peers) : Math.max(...peers);
}

const resultsFile = new URL("./results.json", import.meta.url);

export const readResult = (): PeersResult => JSON.parse(readFileSync(resultsFile, "utf8"));

export async function writePage(result: PeersResult): Promise<void> {
  const folder = new URL("../../docs/performance/", import.meta.url);
  await mkdir(folder, { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(result, null, 2)}\n`);
  await writeFile(new URL("peers.md", folder), renderPage(result));
  for (const comparison of result.comparisons) {
    await writeFile(new URL(`${comparison.key}.svg`, folder), renderChart(comparison));
  }
}

const renderChart = ({ title, unit, better, figures }: Comparison) =>
  barChart({
    title,
    unit,
    better,
    bars: figures.map(({ name, median: value }) => ({ name, value, ours: isOurs(name) })),
  });

export function renderPage({ environment, contenders, comparisons, ratios }: PeersResult): string {
  const list = (of: Readonly<Record<string, string | number>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `# Comparison with peers

\`npm run bench -- peers\` generated this page on ${environment.date}; the raw rounds are in \`bench/peers/results.json\`. Every contender has its
own process and database on one PostgreSQL, in turns; figures are medians of ${environment.size.rounds} rounds (of ${environment.size.longRounds} where a round
takes minutes).

- Machine: ${list(environment.machine)}
- Versions: ${list(environment.versions)}
- Durable for all: PostgreSQL with fsync and synchronous_commit on, Redis with appendonly and appendfsync always

${Object.entries(ratios)
  .map(([name, value]) => `- **${name}: ${value}**`)
  .join("\n")}

${comparisons.map(renderSection).join("\n")}
## Settings, and what each does not guarantee

| contender | settings | does not guarantee |
|---|---|---|
${Object.entries(contenders)
  .map(([name, { settings, notGuaranteed }]) => `| ${name} | ${settings} | ${notGuaranteed} |`)
  .join("\n")}

Todoke has its epoch fence on in every figure: a worker that lost its lease changes nothing.
`;
}

/** Lists the peers that are ahead of our jobs table, with the reason. */
function renderBehind({ better, figures, whyBehind }: Comparison): string {
  const ours = figures.find(({ name }) => name === "Todoke, jobs table")?.median ?? Number.NaN;
  const isAhead = ({ name, median }: PeerFigure) =>
    !isOurs(name) && (better === "less" ? median < ours : median > ours);
  const ahead = figures.filter(isAhead).map(({ name, median }) => `${name} (${(median / ours).toFixed(2)} of ours)`);
  return whyBehind && ahead.length > 0 ? `\nAhead of Todoke: ${ahead.join(", ")}. ${whyBehind}\n` : "";
}

function renderSection(comparison: Comparison): string {
  const { key, date, title, unit, better, figures, absent } = comparison;
  const rows = figures.map(
    ({ name, median, rounds, note }: PeerFigure) =>
      `| ${name} | ${formatNumber(median)} | ${rounds.map(formatNumber).join(", ")} | ${note ?? ""} |`,
  );
  const missing = Object.entries(absent).map(([name, reason]) => `| ${name} | | | ${reason} |`);
  return `## ${title}

![${title}: ${unit}, ${better} is better](${key}.svg)

| contender | ${unit} | rounds | |
|---|---|---|---|
${[...rows, ...missing].join("\n")}
${renderBehind(comparison)}${date === undefined ? "" : `\n*Measured on ${date}.*\n`}`;
}

const formatNumber = (value: number) => value.toLocaleString("en");
