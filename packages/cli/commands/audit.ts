/** `todoke audit`: checks the rules of a ledger on the live database. The subcommands are in audit/. */
import type { Command } from "../command.ts";
import { runSubcommand, type Subcommand } from "../subcommands.ts";

const subcommands: Record<"points", Subcommand> = {
  points: {
    // Imported here because it loads the whole service.
    run: async (call) => (await import("../audit/points.ts")).auditPoints(call),
    options: ["json"],
  },
};

export const audit: Command = {
  name: "audit",
  summary: "check the points ledger on the live database",
  usage: "todoke audit points [--json]",
  details: `
  points    compares balances, transactions, lots, holds and reservations, rule by rule

Reads the whole ledger in one statement, so concurrent changes cannot cause false findings. It changes nothing and
blocks nothing. A million transactions take about ten seconds. It needs only the database (POINTS_DATABASE_URL or
DATABASE_URL, else the database of the \`todoke dev\` in this folder). For a nightly job: the exit code is 1 if a rule
is violated, and --json prints every finding.`,
  switches: { json: "print JSON" },
  takesArgs: true,
  run: (call) => runSubcommand(subcommands, call),
};
