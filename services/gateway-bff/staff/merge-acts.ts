/**
 * Merges the acts of staff of all services, newest first. Each source is paged on its own: the cursor has the last act of each
 * source that was shown, so nothing is skipped or repeated, whatever the clocks of the databases say.
 */

export interface Act {
  readonly service: string;
  readonly act_id: string;
  readonly at: string;
  readonly [field: string]: unknown;
}

/** Acts of one source after its position, newest first. */
export interface SourcePage {
  readonly source: string;
  readonly acts: readonly Act[];
  /** The cursor of an act in its source. */
  readonly cursorOf: (act: Act) => string;
  readonly hasMore: boolean;
}

export type Positions = Readonly<Record<string, string>>;

export interface MergedActs {
  readonly acts: readonly Act[];
  /** Undefined on the last page. */
  readonly positions: Positions | undefined;
}

export function mergeActs(pages: readonly SourcePage[], before: Positions, limit: number): MergedActs {
  const all = pages.flatMap((page) => page.acts.map((act) => ({ act, page })));
  // The sort is stable, so acts of one source keep their order.
  const shown = all.sort((a, b) => compare(b.act.at, a.act.at)).slice(0, limit);
  const isLast = shown.length === all.length && pages.every(({ hasMore }) => !hasMore);
  const positions = Object.fromEntries(shown.map(({ act, page }) => [page.source, page.cursorOf(act)]));
  return { acts: shown.map(({ act }) => act), positions: isLast ? undefined : { ...before, ...positions } };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
