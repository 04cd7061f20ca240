/** Ends that are taken from the streams by this process and not struck off yet, mode by mode. */
import { endsMax } from "../../store/ends.ts";
import { type Entry, entryOf, type RawEntry } from "./kept.ts";
import { defaultPlace, type RecordOptions, recordEntries } from "./record.ts";
import { countEnds, takeEnds } from "./recorder-scripts.ts";
import { keysOf } from "./words.ts";

export interface RecordsOptions extends RecordOptions {
  readonly modes: () => readonly string[];
  /** Hears that tickets wait again, because a match of theirs did not come about. */
  readonly onGivenBack?: (mode: string) => void;
  /** Whoever holds ends for so long without striking them off is dead, or cannot reach PostgreSQL. */
  readonly takenAgainMs?: number;
}

// Taken and struck off by one script each, which hold everybody up while they run: some milliseconds.
const batchMax = Math.min(250, endsMax);
// While PostgreSQL writes one batch, the next is taken and the one before struck off.
const lanes = 2;
// Of one mode at a time; then the others have their turn.
const batchesMax = 8;

export function openRecords(options: RecordsOptions) {
  const { link, place = defaultPlace, modes, onGivenBack, takenAgainMs = 10_000 } = options;
  const held = new Map<string, (readonly Entry[])[]>();
  const noted = new Set<string>();
  const known = () => new Set([...modes(), ...noted, ...held.keys()]);

  async function take(mode: string): Promise<readonly Entry[]> {
    const input = { keys: keysOf(place, mode), arguments: [String(batchMax), String(takenAgainMs)] };
    return ((await link.run(takeEnds, input)) as RawEntry[]).map((raw) => entryOf(mode, raw));
  }

  /** Records a batch, and tells how many it had. One that failed is held, and is the next to be tried. */
  async function recordBatch(mode: string): Promise<number> {
    const entries = held.get(mode)?.pop() ?? (await take(mode));
    if (entries.length === 0) return 0;
    try {
      const { givenBack } = await recordEntries(options, { mode, entries });
      if (givenBack > 0) onGivenBack?.(mode);
      return entries.length;
    } catch (error) {
      held.set(mode, [...(held.get(mode) ?? []), entries]);
      throw error;
    }
  }

  async function recordBatches(mode: string): Promise<number> {
    let all = 0;
    for (let batches = 0; batches < batchesMax; batches++) {
      const moved = await recordBatch(mode);
      all += moved;
      if (moved < batchMax) break;
    }
    return all;
  }

  return {
    known,
    /** Ends of this mode are recorded from now on, though `modes` may not name it. */
    note(mode: string): void {
      noted.add(mode);
    },

    /** Records ends of a mode, and tells how many; 0 when there are none left. */
    async recordMode(mode: string): Promise<number> {
      const first = await recordBatch(mode);
      if (first < batchMax) return first;
      const all = await Promise.allSettled(Array.from({ length: lanes }, () => recordBatches(mode)));
      const failed = all.find((lane) => lane.status === "rejected");
      if (failed) throw failed.reason;
      return all.reduce((sum, lane) => sum + (lane.status === "fulfilled" ? lane.value : 0), first);
    },

    async backlog(): Promise<ReadonlyMap<string, number>> {
      const count = async (mode: string) => {
        const waiting = await link.run(countEnds, { keys: keysOf(place, mode), arguments: [] });
        return [mode, Number(waiting)] as const;
      };
      return new Map(await Promise.all([...known()].map(count)));
    },
  };
}
