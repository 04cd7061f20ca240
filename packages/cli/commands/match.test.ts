import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testDatabase } from "@todoke/kernel/testing";
import { migrate } from "@todoke/matchmaking";
import { expect, test } from "vitest";
import { openShell } from "../testing/command.ts";

const guide = readFileSync(new URL("../../../docs/guides/matchmaking-rules.md", import.meta.url), "utf8");

const rules = `modes:
  ranked:
    ticket_seconds: 60
    heartbeat_seconds: 10
    skill: { window: [{ after: 0, gap: 50 }, { after: 20, gap: any }] }
  regional:
    regions:
    latency: { max_ms: [{ after: 0, ms: 80 }, { after: 5, ms: any }] }
`;

/** A shell whose folder contains these files. */
function shellWith(files: Record<string, string>) {
  const shell = openShell("todoke");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(shell.folder, name), text);
  return shell;
}

test("check summarizes a valid file, and prints every error of an invalid one with its line", async () => {
  await using shell = shellWith({ "good.yaml": rules, "bad.yaml": "modes:\n  a:\n    teams: 1\n    skil:\n" });
  const good = await shell.run("match check --rules good.yaml");
  expect(good).toMatchObject({ code: 0, err: "" });
  expect(good.out).toMatch(
    /^Valid: 2 modes, version [0-9a-f]{16}\.\n\n {2}ranked +2 teams of 1 +by skill +tickets expire after 60 s, heartbeat within 10 s\n {2}regional +2 teams of 1 +by regions, latency +tickets expire after 600 s\n$/,
  );
  expect(await shell.run("match check --rules bad.yaml")).toEqual({
    code: 2,
    out: "",
    err:
      "✗ bad.yaml:3: modes.a.teams should be a whole number from 2 to 16, and is 1\n" +
      "✗ bad.yaml:4: modes.a.skil is not known here; did you mean skill?\n",
  });
  expect(await shell.run("match check --rules none.yaml")).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^✗ none.yaml cannot be read: ENOENT/),
  });
});

test("simulate gives the same result for the same seed", async () => {
  await using shell = openShell("todoke");
  const first = await shell.run("match simulate --mode ranked --players 10000 --json");
  expect(first).toMatchObject({ code: 0 });
  const [ranked] = JSON.parse(first.out).modes;
  expect(ranked).toMatchObject({ mode: "ranked", tickets: 10_000 });
  expect(ranked.matched + ranked.expired.timeout + ranked.expired.heartbeat).toBe(10_000);
  expect(ranked.matched).toBeGreaterThan(9_900);
  expect(ranked.skill_gap.p50).toBeLessThanOrEqual(50);
  expect((await shell.run("match simulate --mode ranked --players 10000 --json")).out).toBe(first.out);
  expect((await shell.run("match simulate --mode ranked --players 10000 --json --seed 2")).out).not.toBe(first.out);
  const [, shown = ""] = /```\n(ranked: [\s\S]*?)\n\nSkill gap of a match\n/.exec(guide) ?? [];
  const { out } = await shell.run("match simulate --mode ranked");
  expect(out.startsWith(shown) && shown !== "", `the guide is out of date:\n${out}`).toBe(true);
});

test("simulate prints shares, percentiles, regions and histograms of every mode or one", async () => {
  await using shell = shellWith({ "rules.yaml": rules });
  const { code, out } = await shell.run("match simulate --rules rules.yaml --players 600 --per-second 2");
  expect(code).toBe(0);
  expect(out).toMatch(
    /^ranked: 600 tickets within \d+ min\n\n {2}matched +\d+ +[\d.]+ % +in \d+ matches\n {2}expired /,
  );
  expect(out).toMatch(/\n +p50 +p90 +p99 +max\n {2}waiting, in seconds +[\d.]+/);
  expect(out).toMatch(/\nSkill gap of a match\n {2}0 to \d+ +█+ \d+\n/);
  expect(out).toMatch(/\n\nregional: 600 tickets within/);
  expect(out).toMatch(/\n {2}region +matches +waiting p50 +p90 +p99 +max\n {2}eu +\d+ /);
});

test("simulate replays recorded tickets with their cancels, heartbeats and avoided opponents", async () => {
  const at = (seconds: number) => new Date(Date.UTC(2026, 10, 16) + seconds * 1000).toISOString();
  const ticket = (user_id: string, joined: number, more: object = {}) =>
    JSON.stringify({ user_id, joined_at: at(joined), attributes: { skill: 1000 }, ...more });
  const recorded = [
    ticket("b", 1),
    ticket("a", 0),
    ticket("a", 10), // has just met b
    ticket("b", 11),
    ticket("c", 12, { attributes: {} }),
    ticket("d", 300, { status: "CANCELLED", ended_at: at(305) }),
    ticket("e", 306),
    ticket("e", 307),
    ticket("f", 600, { status: "EXPIRED", reason: "heartbeat", ended_at: at(615) }),
  ];
  const avoiding =
    "modes: { m: { ticket_seconds: 60, heartbeat_seconds: 10, avoid_last_opponent_seconds: 100, skill: { window: [{ after: 0, gap: any }] } } }";
  await using shell = shellWith({ "rules.yaml": avoiding, "tickets.ndjson": `${recorded.join("\n")}\n` });
  const { code, out, err } = await shell.run("match simulate --rules rules.yaml --tickets tickets.ndjson --json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(out).modes).toMatchObject([
    {
      tickets: 9,
      matches: 1,
      matched: 2,
      expired: { timeout: 3, heartbeat: 1 },
      cancelled: 1,
      refused: 1,
      already_waiting: 1,
    },
  ]);
});

test("invalid input of a simulation is rejected with what to do", async () => {
  const bad = '{"user_id":"a"}\n[]\n{"user_id":"a","joined_at":"2026-11-16T00:00:00Z","party_size":0}\n';
  await using shell = shellWith({ "rules.yaml": rules, "bad.ndjson": bad });
  const firstError = async (args: string) => (await shell.run(`match ${args}`)).err.split("\n")[0];
  expect(await firstError("simulate --mode rankd")).toBe('✗ The rules have no mode "rankd". Did you mean "ranked"?');
  expect(await firstError("simulate --players many")).toBe("✗ --players is a number from 2 to 1000000.");
  expect(await firstError("simulate --skill 1500")).toMatch(/^✗ --skill is a mean and a standard deviation/);
  expect(await firstError("simulate --tickets x --players 5")).toMatch(/^✗ --players describes generated players/);
  expect(await firstError("simulate --rules rules.yaml --tickets bad.ndjson")).toMatch(/^✗ --tickets needs one mode/);
  expect(await firstError("check --players 5")).toBe("✗ --players is not an option of check.");
  expect(await firstError("export --mode duel --since week")).toBe("✗ --since is 1h to 3650d.");
  expect((await shell.run("match simulate --rules rules.yaml --mode ranked --tickets bad.ndjson")).err).toBe(
    "✗ bad.ndjson:1: joined_at should be a time as 2026-11-16T10:00:00Z\n" +
      "✗ bad.ndjson:2: user_id is missing or not a string\n" +
      "✗ bad.ndjson:3: party_size should be a positive integer\n",
  );
});

test("export prints all recently ended tickets of a mode, in the format of simulate", async () => {
  await using t = await testDatabase({ sets: [] });
  const env = { DATABASE_URL: t.url };
  await migrate(env, { dryRun: false });
  await t.db.query(`
    insert into matchmaking.ticket_ends
      (ticket_id, mode, user_id, status, reason, party_size, attributes, joined_at, expires_at, ended_at)
    select mode || '.' || n, mode, 'u' || n, 'EXPIRED', 'timeout', 1, '{"skill": 1500}', at - interval '10 seconds', at, at
      from unnest(array['ranked', 'duel']) mode, generate_series(1, 1500) n,
           lateral (select now() - case when n > 1440 then interval '2 days' else n * interval '1 second' end as at) ended`);
  await using shell = openShell("todoke");
  const { code, out, err } = await shell.run("match export --mode ranked --since 24h", env);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const tickets = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(tickets).toHaveLength(1440);
  expect(tickets.find(({ user_id }) => user_id === "u7")).toEqual({
    ticket_id: "ranked.7",
    user_id: "u7",
    party_size: 1,
    attributes: { skill: 1500 },
    joined_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/),
    ended_at: expect.any(String),
    status: "EXPIRED",
    reason: "timeout",
  });
  writeFileSync(join(shell.folder, "recorded.ndjson"), out);
  const played = await shell.run("match simulate --mode ranked --tickets recorded.ndjson --json");
  expect(JSON.parse(played.out).modes).toMatchObject([{ tickets: 1440, matched: 1440, skill_gap: { max: 0 } }]);
  const empty = await shell.run("match export --mode nobody", env);
  expect(empty).toEqual({ code: 0, out: "", err: "" });
});

test("a copy of the built-in rules is valid", async () => {
  const text = readFileSync(new URL("../../../services/matchmaking/rules/built-in.yaml", import.meta.url), "utf8");
  await using shell = shellWith({ "mine.yaml": text });
  expect((await shell.run("match check --rules mine.yaml")).out).toBe((await shell.run("match check")).out);
});

test("the file in the guide is valid, and its errors are those that the guide shows", async () => {
  const [, file = ""] = /```yaml\n([\s\S]*?)```/.exec(guide) ?? [];
  const slips = file.replace("after: 60", "after: 20").replace("max_ms", "max_mss");
  await using shell = shellWith({ "good.yaml": file, "rules.yaml": slips });
  expect((await shell.run("match check --rules good.yaml")).out).toMatch(/^Valid: 2 modes/);
  const { err } = await shell.run("match check --rules rules.yaml");
  expect(err).not.toBe("");
  expect(guide).toContain(`\`\`\`\n${err}\`\`\``);
});
