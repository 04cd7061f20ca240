/**
 * What a long queue costs: the same matches, made and put on record, with a thousand waiting and with a hundred thousand.
 * Those who are matched are replaced by others before the next ones are, so the queue stays as long as it is.
 */
import { type Contender, race } from "../measure.ts";
import { ratio } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { type Engines, fill, nameOf, openDatabase, openQueue, type Store, stores, terms } from "./queues.ts";

const lengths = { few: 1_000, many: 100_000 };
const matchesAtOnce = 250;
const turns = 20;
// About as often as a matcher does it, for so many matches.
const turnsPerSweep = 10;

export async function longQueue(engines: Engines): Promise<Result> {
  const ratios: Record<string, number> = {};
  for (const store of stores) Object.assign(ratios, await longQueueOf(store, engines));
  const wanted = Object.fromEntries(stores.map((store) => [`${nameOf[store]}, 100,000 / 1,000 waiting`, "about 1"]));
  return { title: "matches on record a second, by how many wait, medians of 3", figures: [], ratios, wanted };
}

async function longQueueOf(store: Store, engines: Engines): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const modes = Object.keys(lengths) as (keyof typeof lengths)[];
  const { queue, recorded } = started.use(openQueue(store, { engines, database, recordedModes: modes }));

  async function turn(mode: string, sweeps: boolean): Promise<void> {
    if (sweeps) await queue.sweep(mode);
    const { made } = await queue.matchFifo(mode, { ...terms, players: 2, matchesMax: matchesAtOnce });
    if (made !== matchesAtOnce) throw new Error(`${made} matches were made, not ${matchesAtOnce}`);
    await recorded(mode);
  }

  const contender = (mode: keyof typeof lengths): Contender => {
    let ms = 0;
    return {
      name: `${nameOf[store]}, ${lengths[mode].toLocaleString("en")} waiting`,
      async run() {
        ms = 0;
        for (let n = 0; n < turns; n++) {
          const startedAt = performance.now();
          await turn(mode, n % turnsPerSweep === 0);
          ms += performance.now() - startedAt;
          await fill(queue, { mode, count: 2 * matchesAtOnce });
        }
        return turns * matchesAtOnce;
      },
      seconds: () => ms / 1_000,
    };
  };
  for (const mode of modes) await fill(queue, { mode, count: lengths[mode] });
  const contenders = modes.map(contender);
  for (const { run } of contenders) await run(); // Warm.
  const [few, many] = await race("a long queue", contenders);
  return {
    [few?.name ?? ""]: few?.perSecond ?? Number.NaN,
    [many?.name ?? ""]: many?.perSecond ?? Number.NaN,
    [`${nameOf[store]}, 100,000 / 1,000 waiting`]: ratio(many, few),
  };
}
