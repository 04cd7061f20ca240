/** `todoke match`: checks and simulates matchmaking rules before they are used. The subcommands are in match/. */
import type { Command } from "../command.ts";
import { runSubcommand, type Subcommand } from "../subcommands.ts";

const subcommands: Record<"check" | "simulate" | "export", Subcommand> = {
  check: { run: async (call) => (await import("../match/check.ts")).check(call), options: ["rules"] },
  simulate: {
    run: async (call) => (await import("../match/simulate.ts")).simulate(call),
    options: ["rules", "mode", "players", "per-second", "seed", "skill", "tickets", "json"],
  },
  export: { run: async (call) => (await import("../match/export.ts")).exportTickets(call), options: ["mode", "since"] },
};

export const match: Command = {
  name: "match",
  summary: "check and simulate matchmaking rules",
  usage: "todoke match check --rules <file> | simulate --rules <file> [--mode <mode>] | export --mode <mode>",
  details: `
  check      check a rules file: prints every error with its line, or a summary of its modes
  simulate   simulate waiting times and skill gaps, and print percentiles and histograms
  export     export ended tickets from the database, one JSON object per line, for simulate --tickets

Without --rules the built-in rules are used. A simulation has its own clock and uses the rules and the matching code
of the service; the same command prints the same result. Generated players arrive at random times, with normally
distributed skill and with the regions, latencies and parties that the mode uses. If the mode requires heartbeats, one
in fifty players stops sending them.`,
  values: {
    rules: ["<file>", "the rules file, YAML or JSON"],
    mode: ["<mode>", "simulate: only this mode (default: all); export: the mode to export"],
    players: ["<n>", "simulate: number of players (default 10000)"],
    "per-second": ["<n>", "simulate: average arrivals per second (default 20)"],
    skill: ["<mean,sd>", "simulate: mean and standard deviation of the skill (default 1500,300)"],
    seed: ["<n>", "simulate: seed of the random players (default 1)"],
    tickets: ["<file>", "simulate: use exported tickets instead of generated players"],
    since: ["<7d|12h>", "export: tickets that ended within this time (default 7d)"],
  },
  switches: { json: "simulate: print JSON" },
  takesArgs: true,
  run: (call) => runSubcommand(subcommands, call),
};
