import { EngineNotFound, findEngine } from "@todoke/engines";
import { transaction } from "@todoke/kernel/db";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runRole, startRole } from "./child.ts";
import { contenderNames, getContender } from "./contenders.ts";
import { defaultPool, peerDatabase } from "./database.ts";
import { computeRatios, packageVersions, renderPage, toResult } from "./page.ts";
import { type RoundSetup, warmUpJob } from "./peer.ts";
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

async function openSetup(): Promise<RoundSetup & AsyncDisposable> {
  const database = await peerDatabase(postgresUrl);
  return { postgresUrl: database.url, redisUrl, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

test.each(contenderNames)("%s runs every job once and leaves none unfinished", async (contender) => {
  await using setup = await openSetup();
  const result = await runRole({ contender, role: "listStarted", setup, options: { jobs: 60 } });
  const { found, started } = result as { found: number; started: number[] };
  expect(found).toBe(60);
  expect(started).toHaveLength(60);
  expect(new Set(started).size).toBe(60);
});

const inTransactions = contenderNames.filter((name) => !getContender(name).outsidePostgres);

test.each(inTransactions)("%s stores a job if and only if the caller's transaction commits", async (name) => {
  await using setup = await openSetup();
  await using peer = await getContender(name).open(setup);
  const db = defaultPool(setup.postgresUrl, 1);
  await transaction(db, async (tx) => void (await peer.enqueue?.(tx, warmUpJob)));
  const rolledBack = transaction(db, async (tx) => {
    await peer.enqueue?.(tx, warmUpJob);
    throw new Error("no");
  });
  await expect(rolledBack).rejects.toThrow("no");
  await db.end();
  expect(await peer.countUnfinished()).toBe(1);
});

test("a contender's process returns its figure, and an error names the process", async () => {
  await using setup = await openSetup();
  const task = { contender: "Todoke, jobs table", setup } as const;
  const result = await runRole({ ...task, role: "drain", options: { jobs: 100, drainMsMax: 120_000 } });
  expect(Number(result)).toBeGreaterThan(0);
  await using child = startRole({ ...task, role: "drain", options: {} });
  await expect(child.message("result")).rejects.toThrow("Todoke, jobs table, drain: exited");
});

const comparison = (key: string, better: "more" | "less", medians: Record<string, number>): Comparison => ({
  key,
  title: key,
  unit: "x",
  better,
  figures: Object.entries(medians).map(([name, median]) => ({ name, median, rounds: [median] })),
  absent: { absentee: "a reason" },
});

const comparisons = [
  comparison("drain", "more", { "Todoke, jobs table": 60, "Todoke, outbox": 99, "pg-boss": 30, "graphile-worker": 50 }),
  comparison("enqueue", "more", { "Todoke, jobs table": 40, "pg-boss": 10 }),
  {
    ...comparison("pick-up-idle", "less", { "Todoke, jobs table": 2, "pg-boss": 1, BullMQ: 4 }),
    whyBehind: "Why.",
  },
];

test("ratios compare with the best peer, by more or by less, and never with ourselves", () => {
  expect(computeRatios(comparisons)).toMatchObject({
    "drain / fastest peer": 1.2,
    "enqueue / pg-boss": 4,
    "pick-up when idle / best peer (less is better)": 2,
  });
});

test("the page has a chart and a table per comparison, and the settings of every contender", () => {
  const machine = { cpu: "1 x none", memoryGiB: 1, node: "v0" };
  const environment = { date: "2026-01-01", machine, versions: packageVersions(), size: quickSize };
  const page = renderPage(toResult(environment, comparisons));
  for (const { key } of comparisons) expect(page).toContain(`](${key}.svg)`);
  expect(page).toContain("| pg-boss | 30 | 30 |  |");
  expect(page).toContain("| absentee | | | a reason |");
  expect(page).toContain("\nAhead of Todoke: pg-boss (0.50 of ours). Why.\n");
  for (const name of contenderNames)
    expect(page).toContain(`| ${name} | ${getContender(name).settings} | ${getContender(name).notGuaranteed} |`);
  expect(page).toMatch(/pg-boss \d+\.\d+\.\d+/);
});
