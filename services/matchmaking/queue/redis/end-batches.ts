/** Claims ends from the streams and records them, in batches per mode. */
import { runBatches } from "@todoke/kernel/worker";
import { endsMax } from "../record-ends.ts";
import { keysFor } from "./prelude.ts";
import { defaultKeyPrefix, type RecordOptions, recordEntries } from "./record-entries.ts";
import { claimEnds, countEnds } from "./recorder-scripts.ts";
import { type EndEntry, parseEntry, type RawEntry } from "./ticket-record.ts";

export interface EndBatchesOptions extends RecordOptions {
  readonly modes: () => readonly string[];
  /** Called when tickets of a void match wait again. */
  readonly onRequeued?: (mode: string) => void;
  /** A process that has not acked its claimed ends after this time has crashed, or cannot reach PostgreSQL. */
  readonly reclaimMs?: number;
}

// One script claims or acks a batch and blocks Redis for some milliseconds.
const batchMax = Math.min(250, endsMax);
// While PostgreSQL writes one batch, the next one is claimed and the previous one acked.
const concurrency = 2;
// Batches of one mode before the other modes get their turn.
const batchesMax = 8;

export function openEndBatches(options: EndBatchesOptions) {
  const { link, keyPrefix = defaultKeyPrefix, modes, onRequeued, reclaimMs = 10_000 } = options;
  const failedBatches = new Map<string, (readonly EndEntry[])[]>();
  const added = new Set<string>();
  const allModes = () => new Set([...modes(), ...added, ...failedBatches.keys()]);

  async function claim(mode: string): Promise<readonly EndEntry[]> {
    const input = { keys: keysFor(keyPrefix, mode), arguments: [String(batchMax), String(reclaimMs)] };
    return ((await link.run(claimEnds, input)) as RawEntry[]).map((raw) => parseEntry(mode, raw));
  }

  /** Returns the size of the batch. A batch that fails is kept and is the next one to be recorded. */
  async function recordBatch(mode: string): Promise<number> {
    const entries = failedBatches.get(mode)?.pop() ?? (await claim(mode));
    if (entries.length === 0) return 0;
    try {
      const { requeued } = await recordEntries(options, { mode, entries });
      if (requeued > 0) onRequeued?.(mode);
      return entries.length;
    } catch (error) {
      failedBatches.set(mode, [...(failedBatches.get(mode) ?? []), entries]);
      throw error;
    }
  }

  const recordBatches = (mode: string) => runBatches(() => recordBatch(mode), { batchMax, batchesMax });

  return {
    allModes,
    /** Includes this mode from now on, even if `modes` does not list it. */
    addMode(mode: string): void {
      added.add(mode);
    },

    /** Returns how many ends were recorded; 0 if none are left. */
    async recordMode(mode: string): Promise<number> {
      const first = await recordBatch(mode);
      if (first < batchMax) return first;
      const all = await Promise.allSettled(Array.from({ length: concurrency }, () => recordBatches(mode)));
      const failed = all.find((each) => each.status === "rejected");
      if (failed) throw failed.reason;
      return all.reduce((sum, each) => sum + (each.status === "fulfilled" ? each.value : 0), first);
    },

    async backlog(): Promise<ReadonlyMap<string, number>> {
      const count = async (mode: string) => {
        const backlog = await link.run(countEnds, { keys: keysFor(keyPrefix, mode), arguments: [] });
        return [mode, Number(backlog)] as const;
      };
      return new Map(await Promise.all([...allModes()].map(count)));
    },
  };
}
