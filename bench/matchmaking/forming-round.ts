/** A round of a mode with rules, from looking at those who wait to the matches being made: `ranked`, 5,000 waiting. */
import { formMatches } from "@todoke/matchmaking/forming";
import { builtInRules } from "@todoke/matchmaking/rules";
import { median } from "../measure.ts";
import { round } from "../pipeline.ts";
import type { Result } from "../report.ts";
import { type Engines, fill, nameOf, openDatabase, openQueue, type Store, stores, terms } from "./queues.ts";

const waiting = 5_000;
const rounds = 3;
const mode = "ranked";

export async function formingRound(engines: Engines): Promise<Result> {
  const ratios: Record<string, number> = {};
  for (const store of stores) Object.assign(ratios, await formingRoundOf(store, engines));
  const title = `a round of forming in ${mode}, ${waiting.toLocaleString("en")} waiting, ms, medians of ${rounds}`;
  return { title, figures: [], ratios };
}

async function formingRoundOf(store: Store, engines: Engines): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const { queue, recorded } = started.use(openQueue(store, { engines, database, recordedModes: [mode] }));
  const rules = (await builtInRules()).modes.get(mode);
  if (!rules) throw new Error(`the rules have no ${mode}`);
  const took = { "reading the queue": [] as number[], forming: [] as number[], settling: [] as number[] };
  const matches: number[] = [];
  for (let n = 0; n <= rounds; n++) {
    const { length } = (await queue.snapshot(mode, waiting)).tickets;
    await fill(queue, { mode, count: waiting - length, attributes: () => ({ skill: someSkill() }) });
    const startedAt = performance.now();
    const { tickets, now } = await queue.snapshot(mode, waiting);
    const readAt = performance.now();
    const proposals = formMatches(rules, tickets, now);
    const formedAt = performance.now();
    const { made } = await queue.commitProposals(mode, proposals, terms);
    const settledAt = performance.now();
    await recorded(mode);
    if (n === 0) continue; // Warm.
    took["reading the queue"].push(readAt - startedAt);
    took.forming.push(formedAt - readAt);
    took.settling.push(settledAt - formedAt);
    matches.push(made);
  }
  const of = (what: string) => `${nameOf[store]}, ${what}`;
  return {
    ...Object.fromEntries(Object.entries(took).map(([what, ms]) => [of(what), round(median(ms))])),
    [of("matches made")]: median(matches),
  };
}

/** Around 1,500, two thirds of them within 300. */
function someSkill(): number {
  const sum = Array.from({ length: 12 }, Math.random).reduce((all, each) => all + each, 0);
  return Math.round(1_500 + 300 * (sum - 6));
}
