/** One forming round of `ranked` with 5,000 queued tickets: read the queue, form matches, commit them. */
import { formMatches } from "@todoke/matchmaking/forming";
import { builtInRules } from "@todoke/matchmaking/rules";
import { median, round } from "../measure.ts";
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

const waiting = 5_000;
const rounds = 3;
const mode = "ranked";

export async function formingRound(engines: MatchmakingEngines): Promise<Result> {
  const summary: Record<string, number> = {};
  for (const store of stores) Object.assign(summary, await formingRoundOn(store, engines));
  const title = `one forming round in ${mode}, ${waiting.toLocaleString("en")} queued, ms, medians of ${rounds}`;
  return { title, figures: [], summary };
}

async function formingRoundOn(store: Store, engines: MatchmakingEngines): Promise<Record<string, number>> {
  await using started = new AsyncDisposableStack();
  const database = started.use(await openDatabase(engines.postgresUrl));
  const { queue, waitUntilRecorded } = started.use(openQueue(store, { engines, database, recordedModes: [mode] }));
  const rules = (await builtInRules()).modes.get(mode);
  if (!rules) throw new Error(`the rules have no ${mode}`);
  const durationsMs = {
    "read the queue": [] as number[],
    "form matches": [] as number[],
    "commit matches": [] as number[],
  };
  const matches: number[] = [];
  for (let n = 0; n <= rounds; n++) {
    const { length } = (await queue.snapshot(mode, waiting)).tickets;
    await fill(queue, { mode, count: waiting - length, attributes: () => ({ skill: randomSkill() }) });
    const startedAt = performance.now();
    const { tickets, now } = await queue.snapshot(mode, waiting);
    const readAt = performance.now();
    const proposals = formMatches(rules, tickets, now);
    const formedAt = performance.now();
    const { made } = await queue.commitProposals(mode, proposals, terms);
    const committedAt = performance.now();
    await waitUntilRecorded(mode);
    if (n === 0) continue; // Round 0 is the warm-up.
    durationsMs["read the queue"].push(readAt - startedAt);
    durationsMs["form matches"].push(formedAt - readAt);
    durationsMs["commit matches"].push(committedAt - formedAt);
    matches.push(made);
  }
  const labelFor = (step: string) => `${storeLabels[store]}, ${step}`;
  return {
    ...Object.fromEntries(Object.entries(durationsMs).map(([step, ms]) => [labelFor(step), round(median(ms))])),
    [labelFor("matches made")]: median(matches),
  };
}

/** Around 1,500, two thirds of them within 300. */
function randomSkill(): number {
  const sum = Array.from({ length: 12 }, Math.random).reduce((all, each) => all + each, 0);
  return Math.round(1_500 + 300 * (sum - 6));
}
