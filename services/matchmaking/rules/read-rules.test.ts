import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { RulesError, readRules } from "./read-rules.ts";
import { isFifo } from "./types.ts";

const errorsIn = (text: string): readonly string[] => {
  try {
    readRules(text, "rules.yaml");
    return [];
  } catch (error) {
    if (error instanceof RulesError) return error.errors;
    throw error;
  }
};

/** A file with one mode, whose settings begin on line 3. */
const mode = (...lines: string[]) => ["modes:", "  m:", ...lines.map((line) => `    ${line}`)].join("\n");

test("the built-in rules are duel, ranked and squad, and duel matches in join order", () => {
  const { modes } = readRules(readFileSync(new URL("built-in.yaml", import.meta.url), "utf8"), "built-in.yaml");
  expect([...modes.keys()]).toEqual(["duel", "ranked", "squad"]);
  const [duel, ranked, squad] = [...modes.values()];
  expect(duel).toEqual({ mode: "duel", teams: 2, teamSize: 1, partyMax: 1, ticketMs: 600_000, session: {} });
  expect([duel, ranked, squad].map((rules) => rules && isFifo(rules))).toEqual([true, false, false]);
  const steps = [
    { afterMs: 0, limit: 50 },
    { afterMs: 10_000, limit: 100 },
    { afterMs: 30_000, limit: 200 },
    { afterMs: 60_000, limit: Number.POSITIVE_INFINITY },
  ];
  expect(ranked).toMatchObject({
    skill: { attribute: "skill", steps },
    heartbeatMs: 30_000,
    avoidLastOpponentMs: 600_000,
  });
  expect(squad).toMatchObject({ teams: 2, teamSize: 4, partyMax: 4, heartbeatMs: 30_000 });
});

test("every setting is read, from YAML and from JSON", () => {
  const session = { host: "eu.example", ports: [7777, 7778], tls: true, note: null };
  const file = {
    modes: {
      raid: {
        teams: 3,
        team_size: 5,
        party_max: 2,
        ticket_seconds: 90,
        heartbeat_seconds: 20,
        skill: { attribute: "elo", window: [{ after: 0, gap: 10 }] },
        regions: { attribute: "where" },
        latency: {
          attribute: "ping",
          max_ms: [
            { after: 0, ms: 60 },
            { after: 9, ms: "any" },
          ],
        },
        avoid_last_opponent_seconds: 60,
        set_by_backend: ["elo", "party_size"],
        session,
      },
    },
  };
  const { modes } = readRules(JSON.stringify(file), "rules.json");
  expect(modes.get("raid")).toEqual({
    mode: "raid",
    teams: 3,
    teamSize: 5,
    partyMax: 2,
    ticketMs: 90_000,
    heartbeatMs: 20_000,
    skill: { attribute: "elo", steps: [{ afterMs: 0, limit: 10 }] },
    regions: { attribute: "where" },
    latency: {
      attribute: "ping",
      steps: [
        { afterMs: 0, limit: 60 },
        { afterMs: 9_000, limit: Number.POSITIVE_INFINITY },
      ],
    },
    avoidLastOpponentMs: 60_000,
    setByBackend: ["elo", "party_size"],
    session,
  });
});

test("missing settings have defaults, attribute names too", () => {
  const { modes } = readRules(mode("skill: { window: [{ after: 0, gap: any }] }", "regions:"), "rules.yaml");
  expect(modes.get("m")).toMatchObject({ skill: { attribute: "skill" }, regions: { attribute: "regions" } });
  expect(readRules("modes:\n  duel:\n", "x").modes.get("duel")).toMatchObject({ teams: 2, teamSize: 1, partyMax: 1 });
});

test("the version changes exactly when the file changes", () => {
  const version = (text: string) => readRules(text, "x").version;
  expect(version("modes: { a: }")).toBe(version("modes: { a: }"));
  expect(version("modes: { a: }")).not.toBe(version("modes: { b: }"));
});

test("all errors are reported at once, in file order, with their lines", () => {
  const errors = errorsIn(`modes:
  ranked:
    teems: 2
    team_size: two
    ticket_seconds: 60
    heartbeat_seconds: 61
    skill:
      window:
        - { after: 0, gap: 50 }
        - { after: 10, gap: 100 }
        - { after: 10, gap: 40 }
        - after: 60
          gap: any
    session: here
  Big Game:
    teams: 16
    team_size: 5
`);
  expect(errors).toEqual([
    "rules.yaml:3: modes.ranked.teems is not known here; did you mean teams?",
    'rules.yaml:4: modes.ranked.team_size should be a whole number from 1 to 32, and is "two"',
    "rules.yaml:6: modes.ranked.heartbeat_seconds should be a whole number from 5 to 60, and is 61",
    "rules.yaml:11: modes.ranked.skill.window[2].after should be larger than the one before (10)",
    "rules.yaml:11: modes.ranked.skill.window[2].gap should be larger than the one before (100)",
    "rules.yaml:12: modes.ranked.skill.window[3].after is never reached: a ticket lives 60 s",
    "rules.yaml:14: modes.ranked.session should be a map: names, each with its value",
    "rules.yaml:15: modes.Big Game should be named with a-z, 0-9, _ and -, at most 32 characters",
    "rules.yaml:15: modes.Big Game has 16 teams of 5: a match has at most 64 players",
  ]);
});

test.each([
  ["an empty file", "", "rules.yaml:1: the file should have at least one mode, under modes"],
  ["no modes", "modes: {}", "rules.yaml:1: the file should have at least one mode, under modes"],
  ["a root that is a list", "- 1", "rules.yaml:1: the file should be a map: names, each with its value"],
  ["an unknown name", "modes: { a: }\ntree: 1", "rules.yaml:2: tree is not known here, but modes"],
  ["invalid YAML", "modes:\n  a: [1\n  b: 2", "rules.yaml:3: cannot be read: Flow sequence in block collection"],
  ["the same name twice", "modes:\n  a:\n  a:\n", "rules.yaml:3: cannot be read: Map keys must be unique"],
  ["two documents", "modes: { a: }\n---\nmodes: { b: }", "rules.yaml:2: cannot be read: Source contains multiple"],
  ["an alias", "modes:\n  a: &x {}\n  b: *x", "rules.yaml:3: aliases (*x) are not accepted: write it out"],
  [
    "a tag",
    "modes:\n  a: !!map {}",
    "rules.yaml:2: tags (tag:yaml.org,2002:map) are not accepted: write the value alone",
  ],
  ["a key that is not a string", "modes:\n  ? [a]\n  : 1", "rules.yaml:2: cannot be read: With stringKeys"],
  ["no window", mode("skill:", "  attribute: elo"), "rules.yaml:3: modes.m.skill lacks window"],
  ["a first step after 0", mode("skill: { window: [{ after: 5, gap: 1 }] }"), "should be 0: the first step"],
  ["a step without gap", mode("skill: { window: [{ after: 0 }] }"), "rules.yaml:3: modes.m.skill.window[0] lacks gap"],
  ["no steps", mode("skill: { window: [] }"), "window should be a list of 1 to 20 steps"],
  [
    "a party larger than a team",
    mode("team_size: 2", "party_max: 3"),
    "party_max should be a whole number from 1 to 2",
  ],
  ["too short a ticket lifetime", mode("ticket_seconds: 4"), "ticket_seconds should be a whole number from 5 to 86400"],
  [
    "a fraction of a second",
    mode("ticket_seconds: 5.5"),
    "ticket_seconds should be a whole number from 5 to 86400, and is 5.5",
  ],
  ["an invalid attribute name", mode("regions: { attribute: 7 }"), "regions.attribute should be an attribute name"],
  ["an empty set_by_backend", mode("set_by_backend: []"), "set_by_backend should be a list of 1 to 32 attribute names"],
  [
    "an invalid name in set_by_backend",
    mode("set_by_backend: [Skill]"),
    "set_by_backend[0] should be an attribute name",
  ],
  ["a latency of 0", mode("latency: { max_ms: [{ after: 0, ms: 0 }] }"), "ms should be a whole number from 1 to"],
  [
    "a session with an infinite number",
    mode("session: { x: .inf }"),
    "session has a number that JSON cannot represent",
  ],
  [
    "a large session",
    mode(`session: { x: "${"y".repeat(4090)}" }`),
    "session has 4098 bytes as JSON; the limit is 4096",
  ],
])("%s is an error", (_, text, error) => {
  expect(errorsIn(text).join("\n")).toContain(error);
});

test("too many modes, bytes, levels or aliases are rejected quickly", () => {
  const modes = Array.from({ length: 51 }, (_, at) => `  m${at}:`).join("\n");
  expect(errorsIn(`modes:\n${modes}`)).toEqual(["rules.yaml:1: modes has 51 modes; the limit is 50"]);
  expect(errorsIn(`#${"x".repeat(300_000)}`).join()).toMatch(
    /^rules.yaml:1: the file has 300001 bytes; the limit is 262144/,
  );
  expect(errorsIn(`modes: ${"[".repeat(100_000)}`).join()).toContain("is nested too deeply");
  const bomb = Array.from({ length: 30 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]`).join("\n");
  expect(errorsIn(`a0: &a0 x\n${bomb}`)).toHaveLength(30);
  const wrong = Array.from({ length: 300 }, (_, at) => `x${at}: 1`).join("\n");
  expect(errorsIn(wrong)).toHaveLength(101);
  expect(errorsIn(wrong).at(-1)).toBe("rules.yaml: and 201 more");
});
