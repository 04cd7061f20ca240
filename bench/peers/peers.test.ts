import { EngineNotFound, findEngine } from "@todoke/engines";
import { transaction } from "@todoke/kernel/db";
import { afterAll, beforeAll, expect, test } from "vitest";
import { play, start } from "./child.ts";
import { contenderOf, names } from "./contenders.ts";
import { peerDatabase, plainPool } from "./database.ts";
import { packageVersions, pageOf, ratiosOf, resultOf } from "./page.ts";
import { noJob, type Site } from "./peer.ts";
import { type Comparison, quickSize } from "./rounds.ts";

const postgresUrl = process.env.TEST_POSTGRES_URL ?? "";
const engines = new AsyncDisposableStack();
let redisUrl = "";

beforeAll(async () => {
  const redis = await findEngine("redis");
  if (redis instanceof EngineNotFound) throw new Error(redis.message);
  redisUrl = engines.use(redis).url;
});
afterAll(() => engines.disposeAsync());

async function site(): Promise<Site & AsyncDisposable> {
  const database = await peerDatabase(postgresUrl);
  return { postgresUrl: database.url, redisUrl, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

test.each(names)("%s works every job that it was filled with, each once, and leaves none", async (contender) => {
  await using at = await site();
  const answer = await play({ contender, role: "tally", site: at, options: { jobs: 60 } });
  const { found, begun } = answer as { found: number; begun: number[] };
  expect(found).toBe(60);
  expect(begun).toHaveLength(60);
  expect(new Set(begun).size).toBe(60);
});

const inTransactions = names.filter((name) => !contenderOf(name).elsewhere);

test.each(inTransactions)("%s has a job if and only if the caller's transaction commits", async (name) => {
  await using at = await site();
  await using peer = await contenderOf(name).open(at);
  const db = plainPool(at.postgresUrl, 1);
  await transaction(db, async (tx) => void (await peer.enqueue?.(tx, noJob)));
  const lost = transaction(db, async (tx) => {
    await peer.enqueue?.(tx, noJob);
    throw new Error("no");
  });
  await expect(lost).rejects.toThrow("no");
  await db.end();
  expect(await peer.left()).toBe(1);
});

test("a contender's process answers with its figure, and one that fails says which it was", async () => {
  await using at = await site();
  const told = { contender: "Todoke, jobs table", site: at } as const;
  const answer = await play({ ...told, role: "drain", options: { jobs: 100, atMostMs: 120_000 } });
  expect(Number(answer)).toBeGreaterThan(0);
  await using child = start({ ...told, role: "drain", options: {} });
  await expect(child.said("answer")).rejects.toThrow("Todoke, jobs table, drain: ended");
});

const comparison = (key: string, better: "more" | "less", medians: Record<string, number>): Comparison => ({
  key,
  title: key,
  unit: "x",
  better,
  figures: Object.entries(medians).map(([name, median]) => ({ name, median, rounds: [median] })),
  absent: { nobody: "a reason" },
});

const comparisons = [
  comparison("drain", "more", { "Todoke, jobs table": 60, "Todoke, outbox": 99, "pg-boss": 30, "graphile-worker": 50 }),
  comparison("enqueue", "more", { "Todoke, jobs table": 40, "pg-boss": 10 }),
  {
    ...comparison("pick-up-at-rest", "less", { "Todoke, jobs table": 2, "pg-boss": 1, BullMQ: 4 }),
    whenBehind: "Why.",
  },
];

test("we are measured by the best of the others, whichever way is better, and never by ourselves", () => {
  expect(ratiosOf(comparisons)).toMatchObject({
    "drain / the fastest peer": 1.2,
    "enqueue / pg-boss": 4,
    "pick-up at rest / the best peer (less is better)": 2,
  });
});

test("the page has a chart and a table of each comparison, and tells settings and lacks of every contender", () => {
  const machine = { cpu: "1 x none", memoryGiB: 1, node: "v0" };
  const about = { date: "2026-01-01", machine, versions: packageVersions(), size: quickSize };
  const page = pageOf(resultOf(about, comparisons));
  for (const { key } of comparisons) expect(page).toContain(`](${key}.svg)`);
  expect(page).toContain("| pg-boss | 30 | 30 |  |");
  expect(page).toContain("| nobody | | | a reason |");
  expect(page).toContain("\nAhead of ours: pg-boss (0.50 of ours). Why.\n");
  for (const name of names)
    expect(page).toContain(`| ${name} | ${contenderOf(name).settings} | ${contenderOf(name).lacks} |`);
  expect(page).toMatch(/pg-boss \d+\.\d+\.\d+/);
});
