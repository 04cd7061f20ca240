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

/** Takes the newest head of all sources, one by one. It keeps the order of each source, even where that is not by time. */
export function mergeActs(pages: readonly SourcePage[], before: Positions, limit: number): MergedActs {
  const taken = new Map(pages.map((page) => [page, 0]));
  const headOf = (page: SourcePage): Act | undefined => page.acts[taken.get(page) ?? 0];
  const positions: Record<string, string> = { ...before };
  const acts: Act[] = [];
  while (acts.length < limit) {
    const next = pages.reduce<SourcePage | undefined>((newest, page) => {
      const head = headOf(page);
      if (!head) return newest;
      const other = newest && headOf(newest);
      return other && other.at >= head.at ? newest : page;
    }, undefined);
    const act = next && headOf(next);
    if (!next || !act) break;
    acts.push(act);
    positions[next.source] = next.cursorOf(act);
    taken.set(next, (taken.get(next) ?? 0) + 1);
  }
  const isLast = pages.every((page) => !headOf(page) && !page.hasMore);
  return { acts, positions: isLast ? undefined : positions };
}
