/** `todoke audit`: whether the books of a service hold, asked of its live database. The verbs are in audit/. */
import type { Command } from "../command.ts";
import { runVerb, type Verb } from "../verbs.ts";

const verbs: Record<"points", Verb> = {
  points: {
    // Loaded only now, for with it comes the whole service.
    run: async (call) => (await import("../audit/points.ts")).auditPoints(call),
    options: ["json"],
  },
};

export const audit: Command = {
  name: "audit",
  summary: "check the ledger of points on a live database: that every rule of its books holds",
  usage: "todoke audit points [--json]",
  details: `
  points    balances, transactions, lots, holds and reservations against each other, each rule by its name

It reads the whole ledger by one statement, so what is written meanwhile is seen whole or not at all; it changes
nothing, and nothing waits for it, but a ledger of millions takes a while. It needs the database only
(POINTS_DATABASE_URL or DATABASE_URL, else that of the \`todoke dev\` in this folder). For a nightly job: the exit
code is 1 when a rule does not hold, and --json has every finding.`,
  switches: { json: "print JSON" },
  takesNames: true,
  run: (call) => runVerb(verbs, call),
};
