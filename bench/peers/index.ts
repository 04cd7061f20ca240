/**
 * Compares the kernel with pg-boss, graphile-worker, pg-transactional-outbox and BullMQ: same machine, same PostgreSQL,
 * durable commits, each with its best documented settings, in turns in one run.
 */
import { machine } from "../measure.ts";
import type { Result } from "../report.ts";
import {
  compareDrain,
  compareEnqueue,
  compareGrowth,
  compareOpenTransaction,
  comparePickUp,
  compareRecovery,
} from "./compare.ts";
import { packageVersions, readResult, renderPage, toResult, writePage } from "./page.ts";
import { type Comparison, type Engines, fullSize, quickSize } from "./rounds.ts";

export interface PeersOptions extends Engines {
  /** "quick" is a short trial: it prints the page and writes nothing. */
  readonly size: "full" | "quick";
  readonly versions: Readonly<Record<string, string>>;
  /** The comparisons to repeat, by name; the others keep their results. Default: all. */
  readonly only?: readonly string[];
}

const comparisonsByName = {
  enqueue: compareEnqueue,
  drain: compareDrain,
  "pick-up": comparePickUp,
  recovery: compareRecovery,
  "open-transaction": compareOpenTransaction,
  growth: compareGrowth,
};

export async function comparePeers(options: PeersOptions): Promise<Result> {
  const size = options.size === "full" ? fullSize : quickSize;
  const { only = [] } = options;
  const date = new Date().toISOString().slice(0, 10);
  const comparisons: Comparison[] = [];
  for (const [name, compare] of Object.entries(comparisonsByName)) {
    if (only.length > 0 && !only.includes(name)) comparisons.push(...storedComparisons(name));
    else comparisons.push(...[await compare(options, size)].flat().map((comparison) => ({ ...comparison, date })));
  }
  const result = toResult(
    {
      date,
      machine: machine(),
      versions: { ...options.versions, ...packageVersions() },
      size,
    },
    comparisons,
  );
  if (options.size === "full") await writePage(result);
  else console.log(renderPage(result));
  return { title: "comparison with peers (docs/performance/peers.md)", figures: [], summary: result.ratios };
}

const storedComparisons = (name: string): Comparison[] =>
  readResult().comparisons.filter(({ key }) => key.startsWith(name));
