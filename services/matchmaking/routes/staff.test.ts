import { afterAll, beforeAll, expect, test } from "vitest";
import { simulateMode } from "../commands/simulate-mode.ts";
import { builtInRules } from "../rules/index.ts";
import { createHarness } from "../testing.ts";

let t: Awaited<ReturnType<typeof createHarness>>;
let process: Awaited<ReturnType<Awaited<ReturnType<typeof createHarness>>["process"]>>;
beforeAll(async () => {
  t = await createHarness();
  process = await t.process();
});
afterAll(() => t[Symbol.asyncDispose]());

const simulate = (mode: string, query = "", as = "staff:vera") =>
  process.call("GET", `/v1/admin/matchmaking/queues/${mode}/simulation${query}`, { as });

test("staff reads the rules in use", async () => {
  const { version, modes } = (await process.call("GET", "/v1/admin/matchmaking/rules", { as: "staff:vera" })).json();
  expect(version).toBe(t.rules().version);
  const ranked = modes.find(({ mode }: { mode: string }) => mode === "ranked");
  expect(ranked).toMatchObject({ teams: 2, team_size: 1, skill: { attribute: "skill" }, latency: null });
  // "any" is no limit, and JSON has no Infinity.
  expect(ranked.skill.steps.at(-1)).toEqual({ after_seconds: expect.any(Number), limit: null });
});

test("a simulation returns the same figures for the same players", async () => {
  const first = await simulate("ranked", "?players=200&per_minute=300&seed=3");
  expect(first.statusCode).toBe(200);
  const figures = first.json();
  expect(figures).toMatchObject({ mode: "ranked", tickets: 200, rules_version: t.rules().version });
  const sum = (bars: readonly { count: number }[]) => bars.reduce((total, { count }) => total + count, 0);
  expect(sum(figures.waiting_histogram)).toBe(figures.matched);
  expect(sum(figures.skill_gap_histogram)).toBe(figures.matches);
  expect((await simulate("ranked", "?players=200&per_minute=300&seed=3")).body).toBe(first.body);
});

test("other requests are answered while a simulation runs, and a second one is refused", async () => {
  const order: string[] = [];
  const running = simulate("ranked", "?players=4000&per_minute=3000").then(({ statusCode }) => {
    order.push("simulation");
    return statusCode;
  });
  // The simulation has begun as soon as another one is refused.
  await expect
    .poll(async () => (await simulate("duel", "?players=2")).json().code, { interval: 1 })
    .toBe("rate-limited");
  for (let n = 0; n < 5; n++) await process.call("GET", "/queues", { as: "u_1" });
  order.push("others");
  expect(await running).toBe(200);
  expect(order).toEqual(["others", "simulation"]);
});

test("players, too many players and unknown modes are refused", async () => {
  expect((await simulate("ranked", "", "u_1")).statusCode).toBe(403);
  expect((await simulate("ranked", "", "key:reader")).statusCode).toBe(403);
  expect((await simulate("ranked", "?players=10001")).statusCode).toBe(400);
  expect((await simulate("ranked", "?per_minute=60001")).statusCode).toBe(400);
  expect((await simulate("nothing")).json().code).toBe("unknown-mode");
});

test("a simulation that takes too long is ended", async () => {
  const rules = await builtInRules();
  const rulesOf = (mode: string) => rules.modes.get(mode) ?? expect.fail(mode);
  const run = simulateMode({ rules: () => rules, rulesOf, timeoutMs: 1 });
  const players = { players: 10_000, perSecond: 1, seed: 1, skill: { mean: 1_500, deviation: 300 } };
  await expect(run("squad", players)).rejects.toMatchObject({ code: "simulation-too-large" });
});
