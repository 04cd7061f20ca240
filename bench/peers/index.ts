/**
 * The kernel beside pg-boss, graphile-worker, pg-transactional-outbox and BullMQ: same machine, same PostgreSQL, durable
 * commits, each at its best documented settings, by turns in one run.
 */

import { machine } from "../measure.ts";
import type { Result } from "../report.ts";
import { drains, enqueues, growths, pickUps, recoveries, throughputsWithOpenTransaction } from "./compare.ts";
import { packageVersions, pageOf, resultOf, writePage } from "./page.ts";
import { type Comparison, type Engines, fullSize, quickSize } from "./rounds.ts";

export interface PeersOptions extends Engines {
  /** "quick" is for trying out: it prints the page, and writes nothing. */
  readonly size: "full" | "quick";
  readonly versions: Readonly<Record<string, string>>;
}

export async function besidePeers(options: PeersOptions): Promise<Result> {
  const size = options.size === "full" ? fullSize : quickSize;
  const comparisons: Comparison[] = [];
  for (const compare of [enqueues, drains, pickUps, recoveries, throughputsWithOpenTransaction, growths]) {
    comparisons.push(...[await compare(options, size)].flat());
  }
  const result = resultOf(
    {
      date: new Date().toISOString().slice(0, 10),
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
