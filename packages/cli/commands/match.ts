/** `todoke match`: rules of matchmaking, checked and tried before anybody plays under them. The verbs are in match/. */
import type { Command } from "../command.ts";
import { runVerb, type Verb } from "../verbs.ts";

const verbs: Record<"check" | "simulate" | "export", Verb> = {
  check: {
    run: async (call) => (await import("../match/check.ts")).check(call),
    options: ["rules"],
  },
  simulate: {
    run: async (call) => (await import("../match/simulate.ts")).simulate(call),
    options: ["rules", "mode", "players", "per-second", "seed", "skill", "tickets", "json"],
  },
  export: {
    run: async (call) => (await import("../match/export.ts")).exportTickets(call),
    options: ["mode", "since"],
  },
};

export const match: Command = {
  name: "match",
  summary: "check matchmaking rules, and simulate how they would play",
  usage: "todoke match check --rules <file> | simulate --rules <file> [--mode <mode>] | export --mode <mode>",
  details: `
  check      whether a rules file is good: every fault with its line, or what its modes come to
  simulate   how long players would wait and how far apart in skill they would be, in numbers and a chart
  export     tickets that have ended, from the database, one JSON object in a line: for simulate --tickets

Without --rules the built-in rules are meant. A simulation runs by a clock of its own, with the service's own
rules and forming of matches; the same command shows the same again. Made-up players come at random moments,
with normally distributed skill, regions, latencies and parties as the mode asks for them; one in fifty goes
away without a word where heartbeats are asked for.`,
  values: {
    rules: ["<file>", "the rules file, YAML or JSON"],
    mode: ["<mode>", "simulate: only this mode, all when none is named; export: of this mode"],
    players: ["<n>", "simulate: so many players come to wait (10000)"],
    "per-second": ["<n>", "simulate: so many of them in a second, on average (20)"],
    skill: ["<mean,sd>", "simulate: their skill, mean and standard deviation (1500,300)"],
    seed: ["<n>", "simulate: another crowd of the same kind (1)"],
    tickets: ["<file>", "simulate: recorded tickets instead, one JSON object in a line"],
    since: ["<7d|12h>", "export: how far back they may have ended (7d)"],
  },
  switches: { json: "simulate: print JSON" },
  takesNames: true,
  run: (call) => runVerb(verbs, call),
};
