/** Gets the figures of a mode. */
import { percentiles, type QueueFigures, toSeconds } from "../queue/queue-figures.ts";
import type { ModeRules } from "../rules/index.ts";

export interface QueueStatsDeps {
  readonly figures: QueueFigures;
  readonly rulesOf: (mode: string) => ModeRules;
}

export function getQueueStats({ figures, rulesOf }: QueueStatsDeps) {
  return async (name: string) => {
    const { mode } = rulesOf(name);
    const [{ waiting, oldestMs }, waits] = await Promise.all([figures.readStatus(mode), figures.readWaits(mode)]);
    const [p50, p90, p99] = percentiles(waits).map(toSeconds);
    return {
      mode,
      waiting,
      ...(oldestMs !== undefined && { oldest_wait_seconds: toSeconds(oldestMs) }),
      ...(p50 !== undefined &&
        p90 !== undefined &&
        p99 !== undefined && { time_to_match_seconds: { p50, p90, p99 }, estimated_wait_seconds: p50 }),
    };
  };
}
