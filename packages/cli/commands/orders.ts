/** `todoke orders`: orders in doubt, and the kill switch, by the database alone. The verbs are in orders/. */
import type { Command } from "../command.ts";
import { runVerb, type Verb } from "../verbs.ts";

const switchOptions = ["reason", "by", "json"];

const verbs: Record<"list" | "show" | "resolve" | "halt" | "cancel-only" | "resume" | "state", Verb> = {
  list: {
    run: async (call) => (await import("../orders/list.ts")).list(call),
    options: ["unresolved", "status", "instrument", "limit", "after", "json"],
  },
  show: {
    run: async (call) => (await import("../orders/show.ts")).show(call),
    options: ["caller", "json"],
  },
  resolve: {
    run: async (call) => (await import("../orders/resolve.ts")).resolve(call),
    options: ["caller", "as", "reason", "by", "broker-order-id", "yes", "json"],
  },
  halt: {
    run: async (call) => (await import("../orders/trading.ts")).setTrading("halt", call),
    options: switchOptions,
  },
  "cancel-only": {
    run: async (call) => (await import("../orders/trading.ts")).setTrading("cancel-only", call),
    options: switchOptions,
  },
  resume: {
    run: async (call) => (await import("../orders/trading.ts")).setTrading("active", call),
    options: switchOptions,
  },
  state: {
    run: async (call) => (await import("../orders/trading.ts")).showTrading(call),
    options: ["json"],
  },
};

export const orders: Command = {
  name: "orders",
  summary: "say what became of orders in doubt; stop trading and let it go on",
  usage: "todoke orders list | show <key> | resolve <key> --as <…> | halt | cancel-only | resume [instrument] | state",
  details: `
  list          orders, newest first; --unresolved: those in doubt, the longest in doubt first
  show          one of them, with every step that it has taken
  resolve       says what became of an order in doubt: --as taken ends it well, --as not-taken sends it again
  halt          nothing goes to the broker any more: of one instrument, or of all when none is named
  cancel-only   the same, but cancels do
  resume        lets it go on
  state         what was stopped, by whom and why

It needs the database only (DATABASE_URL or ORDERS_DATABASE_URL, else that of the \`todoke dev\` in this folder),
so it works while the service is down; a service that runs is woken.

An order is named by its idempotency key, or by its client order id (tdk-…). Look at the broker's own books before
you resolve one: what is resolved as not-taken is sent again. Who said so and why is kept, as it is for the switch.
A halt holds from the next send on and over restarts; the stricter of an instrument's and that over all holds.`,
  values: {
    status: ["<status>", "list: only those that are pending, sending, succeeded, failed, aborted or unknown"],
    instrument: ["<name>", "list: only of this one"],
    limit: ["<n>", "list: at most so many (50)"],
    after: ["<cursor>", "list: the next page, as the end of the last one says"],
    caller: ["<name>", "show, resolve: whose order, where several have the same key"],
    as: ["<taken|not-taken>", "resolve: what became of it"],
    "broker-order-id": ["<id>", "resolve --as taken: what the broker calls it"],
    reason: ["<text>", "why; kept"],
    by: ["<name>", "who says so, if not the user who runs this; kept"],
  },
  switches: {
    unresolved: "list: orders of which it is not known whether the broker has them",
    yes: "resolve: do not ask first",
    json: "print JSON",
  },
  takesNames: true,
  run: (call) => runVerb(verbs, call),
};
