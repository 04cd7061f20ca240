/** The page docs/performance/peers.md, its charts, and the ratios that the comparison is judged by. */
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { barChart } from "../chart.ts";
import type { machine } from "../measure.ts";

import { type ContenderName, contenderOf, isOurs, names } from "./contenders.ts";
import type { Comparison, PeerFigure, Size } from "./rounds.ts";

export interface PeersAbout {
  readonly date: string;
  readonly machine: ReturnType<typeof machine>;
  readonly versions: Readonly<Record<string, string>>;
  readonly size: Size;
}

export interface PeersResult {
  readonly about: PeersAbout;
  readonly contenders: Readonly<Record<string, { settings: string; lacks: string }>>;
  readonly comparisons: readonly Comparison[];
  readonly ratios: Readonly<Record<string, number>>;
}

/** The versions that are installed, by package. */
export function packageVersions(): Record<string, string> {
  const packages = new Set(names.flatMap((name) => contenderOf(name).package ?? []));
  return Object.fromEntries([...packages].map((name) => [name, installedVersion(name)]));
}

function installedVersion(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

export function resultOf(about: PeersAbout, comparisons: readonly Comparison[]): PeersResult {
  const described = names.map((name) => {
    const { settings, lacks } = contenderOf(name);
    return [name, { settings, lacks }] as const;
  });
  return { about, contenders: Object.fromEntries(described), comparisons, ratios: ratiosOf(comparisons) };
}

/** Ours to the best of the others, so that more than 1 is ahead where more is better, and less than 1 where less is. */
export function ratiosOf(comparisons: readonly Comparison[]): Record<string, number> {
  const median = (key: string, name: ContenderName) =>
    comparisons.find((comparison) => comparison.key === key)?.figures.find((figure) => figure.name === name)?.median ??
    Number.NaN;
  const ratio = (over: number, under: number) => Math.round((over / under) * 100) / 100;
  return {
    "drain / the fastest peer": ratio(median("drain", "Todoke, jobs table"), bestPeer(comparisons, "drain")),
    "enqueue / pg-boss": ratio(median("enqueue", "Todoke, jobs table"), median("enqueue", "pg-boss")),
    "enqueue / pg-boss, notify off": ratio(
      median("enqueue", "Todoke, jobs table"),
      median("enqueue", "pg-boss, notify off"),
    ),
    "outbox append / pg-transactional-outbox": ratio(
      median("enqueue", "Todoke, outbox"),
      median("enqueue", "pg-transactional-outbox"),
    ),
    "pick-up at rest / the best peer (less is better)": ratio(
      median("pick-up-at-rest", "Todoke, jobs table"),
      bestPeer(comparisons, "pick-up-at-rest"),
    ),
    "pick-up at rest from the commit / the best peer's (less is better)": ratio(
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

const kept = new URL("./results.json", import.meta.url);

export const readResult = (): PeersResult => JSON.parse(readFileSync(kept, "utf8"));

export async function writePage(result: PeersResult): Promise<void> {
  const folder = new URL("../../docs/performance/", import.meta.url);
  await mkdir(folder, { recursive: true });
  await writeFile(kept, `${JSON.stringify(result, null, 2)}\n`);
  await writeFile(new URL("peers.md", folder), pageOf(result));
  for (const comparison of result.comparisons) {
    await writeFile(new URL(`${comparison.key}.svg`, folder), chartOf(comparison));
  }
}

const chartOf = ({ title, unit, better, figures }: Comparison) =>
  barChart({
    title,
    unit,
    better,
    bars: figures.map(({ name, median: value }) => ({ name, value, ours: isOurs(name) })),
  });

export function pageOf({ about, contenders, comparisons, ratios }: PeersResult): string {
  const list = (of: Readonly<Record<string, string | number>>) =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  return `# Beside the peers

Made by \`npm run bench -- peers\` on ${about.date}; the raw rounds are in \`bench/peers/results.json\`. Every contender has a
process and a database of its own on one PostgreSQL, in turns; figures are medians of ${about.size.rounds} rounds (of ${about.size.longRounds} where a round
takes minutes).

- Machine: ${list(about.machine)}
- Versions: ${list(about.versions)}
- Durable for all: PostgreSQL with fsync and synchronous_commit on, Redis with appendonly and appendfsync always

${Object.entries(ratios)
  .map(([name, value]) => `- **${name}: ${value}**`)
  .join("\n")}

${comparisons.map(sectionOf).join("\n")}
## Settings, and what each does not promise

| contender | settings | does not promise |
|---|---|---|
${Object.entries(contenders)
  .map(([name, { settings, lacks }]) => `| ${name} | ${settings} | ${lacks} |`)
  .join("\n")}

Ours has the epoch fence on in every figure: a worker that lost its lease changes nothing.
`;
}

/** The peers that did better than our jobs table, and why that is so. */
function behindOf({ better, figures, whenBehind }: Comparison): string {
  const ours = figures.find(({ name }) => name === "Todoke, jobs table")?.median ?? Number.NaN;
  const isAhead = ({ name, median }: PeerFigure) =>
    !isOurs(name) && (better === "less" ? median < ours : median > ours);
  const ahead = figures.filter(isAhead).map(({ name, median }) => `${name} (${(median / ours).toFixed(2)} of ours)`);
  return whenBehind && ahead.length > 0 ? `\nAhead of ours: ${ahead.join(", ")}. ${whenBehind}\n` : "";
}

function sectionOf(comparison: Comparison): string {
  const { key, on, title, unit, better, figures, absent } = comparison;
  const rows = figures.map(
    ({ name, median, rounds, note }: PeerFigure) =>
      `| ${name} | ${digits(median)} | ${rounds.map(digits).join(", ")} | ${note ?? ""} |`,
  );
  const missing = Object.entries(absent).map(([name, why]) => `| ${name} | | | ${why} |`);
  return `## ${title}

![${title}: ${unit}, ${better} is better](${key}.svg)

| contender | ${unit} | rounds | |
|---|---|---|---|
${[...rows, ...missing].join("\n")}
${behindOf(comparison)}${on === undefined ? "" : `\n*Measured on ${on}.*\n`}`;
}

const digits = (value: number) => value.toLocaleString("en");
