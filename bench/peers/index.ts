/**
 * The kernel beside pg-boss, graphile-worker, pg-transactional-outbox and BullMQ: same machine, same PostgreSQL, durable
 * commits, each at its best documented settings, by turns in one run.
 */

import { machine } from "../measure.ts";
import type { Result } from "../report.ts";
import { drains, enqueues, growths, pickUps, recoveries, throughputsWithOpenTransaction } from "./compare.ts";
import { packageVersions, pageOf, readResult, resultOf, writePage } from "./page.ts";
import { type Comparison, type Engines, fullSize, quickSize } from "./rounds.ts";

export interface PeersOptions extends Engines {
  /** "quick" is for trying out: it prints the page, and writes nothing. */
  readonly size: "full" | "quick";
  readonly versions: Readonly<Record<string, string>>;
  /** Which comparisons to make anew, by name; all, unless it names some. The others stay as they are. */
  readonly only?: readonly string[];
}

const compares = {
  enqueue: enqueues,
  drain: drains,
  "pick-up": pickUps,
  recovery: recoveries,
  "open-transaction": throughputsWithOpenTransaction,
  growth: growths,
};

export async function besidePeers(options: PeersOptions): Promise<Result> {
  const size = options.size === "full" ? fullSize : quickSize;
  const { only = [] } = options;
  const on = new Date().toISOString().slice(0, 10);
  const comparisons: Comparison[] = [];
  for (const [name, compare] of Object.entries(compares)) {
    if (only.length > 0 && !only.includes(name)) comparisons.push(...keptOf(name));
    else comparisons.push(...[await compare(options, size)].flat().map((made) => ({ ...made, on })));
  }
  const result = resultOf(
    {
      date: on,
      machine: machine(),
      versions: { ...options.versions, ...packageVersions() },
      size,
    },
    comparisons,
  );
  if (options.size === "full") await writePage(result);
  else console.log(pageOf(result));
  return { title: "beside the peers (docs/performance/peers.md)", figures: [], ratios: result.ratios };
}

const keptOf = (name: string): Comparison[] => readResult().comparisons.filter(({ key }) => key.startsWith(name));
