/**
 * The cost of a long queue: the same matches, made and recorded, with 1,000 and with 100,000 queued tickets. Matched tickets
 * are replaced before the next round, so the length stays the same.
 */
import { type Contender, measureInTurns, ratio } from "../measure.ts";
import type { Result } from "../report.ts";
import {
  fill,
  type MatchmakingEngines,
  openDatabase,
  openQueue,
  type Store,
  storeLabels,
  stores,
  terms,
} from "./queues.ts";

const queueLengths = { few: 1_000, many: 100_000 };
const matchesPerRound = 250;
const roundsPerRun = 20;
// About as often as a matcher sweeps for this many matches.
const roundsPerSweep = 10;

export async function longQueue(engines: MatchmakingEngines): Promise<Result> {
  const summary: Record<string, number> = {};
  for (const store of stores) Object.assign(summary, await longQueueOn(store, engines));
  const wanted = Object.fromEntries(
    stores.map((store) => [`${storeLabels[store]}, 100,000 / 1,000 queued`, "about 1"]),
  );
  return { title: "matches recorded per second, by queue length, medians of 3", figures: [], summary, targets: wanted };
}

async function longQueueOn(store: Store, engines: MatchmakingEngines): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const modes = Object.keys(queueLengths) as (keyof typeof queueLengths)[];
  const { queue, waitUntilRecorded } = started.use(openQueue(store, { engines, database, recordedModes: modes }));

  async function matchOnce(mode: string, withSweep: boolean): Promise<void> {
    if (withSweep) await queue.sweep(mode);
    const { made } = await queue.matchFifo(mode, { ...terms, players: 2, matchesMax: matchesPerRound });
    if (made !== matchesPerRound) throw new Error(`${made} matches were made, not ${matchesPerRound}`);
    await waitUntilRecorded(mode);
  }

  const contender = (mode: keyof typeof queueLengths): Contender => {
    let ms = 0;
    return {
      name: `${storeLabels[store]}, ${queueLengths[mode].toLocaleString("en")} queued`,
      async run() {
        ms = 0;
        for (let n = 0; n < roundsPerRun; n++) {
          const startedAt = performance.now();
          await matchOnce(mode, n % roundsPerSweep === 0);
          ms += performance.now() - startedAt;
          await fill(queue, { mode, count: 2 * matchesPerRound });
        }
        return roundsPerRun * matchesPerRound;
      },
      seconds: () => ms / 1_000,
    };
  };
  for (const mode of modes) await fill(queue, { mode, count: queueLengths[mode] });
  const contenders = modes.map(contender);
  for (const { run } of contenders) await run(); // Warm-up.
  const [few, many] = await measureInTurns("a long queue", contenders);
  return {
    [few?.name ?? ""]: few?.perSecond ?? Number.NaN,
    [many?.name ?? ""]: many?.perSecond ?? Number.NaN,
    [`${storeLabels[store]}, 100,000 / 1,000 queued`]: ratio(many, few),
  };
}
