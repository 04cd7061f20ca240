/** `todoke orders`: unresolved orders and the kill switch. It needs only the database. The subcommands are in orders/. */
import type { TradingMode } from "@todoke/orders/operator";
import type { Command } from "../command.ts";
import { runSubcommand, type Subcommand } from "../subcommands.ts";

const setTrading = (mode: TradingMode): Subcommand => ({
  run: async (call) => (await import("../orders/trading.ts")).setTrading(mode, call),
  options: ["reason", "by", "json"],
});

const subcommands: Record<string, Subcommand> = {
  list: {
    run: async (call) => (await import("../orders/list.ts")).list(call),
    options: ["unresolved", "status", "instrument", "limit", "after", "json"],
  },
  show: { run: async (call) => (await import("../orders/show.ts")).show(call), options: ["caller", "json"] },
  resolve: {
    run: async (call) => (await import("../orders/resolve.ts")).resolve(call),
    options: ["caller", "as", "reason", "by", "broker-order-id", "yes", "json"],
  },
  "cancel-all": {
    run: async (call) => (await import("../orders/cancel-all.ts")).cancelAll(call),
    options: ["instrument", "caller", "by", "yes", "json"],
  },
  halt: setTrading("halt"),
  "cancel-only": setTrading("cancel-only"),
  resume: setTrading("active"),
  state: { run: async (call) => (await import("../orders/trading.ts")).showTrading(call), options: ["json"] },
};

export const orders: Command = {
  name: "orders",
  summary: "list, show, resolve and cancel orders; halt and resume trading",
  usage: "todoke orders list | show <key> | resolve <key> --as <…> | cancel-all | halt | cancel-only | resume | state",
  details: `
  list          list orders, newest first; --unresolved: unresolved orders, oldest first
  show          show one order with its history
  resolve       resolve an unresolved order: --as taken (the broker has it) or --as not-taken (it is sent again)
  cancel-all    cancel the open orders of all callers, or of one --caller or --instrument
  halt          stop sending orders and cancels to the broker, for one instrument or for all
  cancel-only   stop sending orders; cancels are still sent
  resume        resume trading
  state         show what is halted, who halted it and why

It needs only the database (DATABASE_URL or ORDERS_DATABASE_URL, else the database of the \`todoke dev\` in this
folder), so it works while the service is down. Running services are woken.

Name an order by its idempotency key or its client order id (tdk-…). Check at the broker before you resolve an order:
an order resolved as not-taken is sent again. Resolutions and halts record who ran them and why.
To have no open order left, run cancel-only first and then cancel-all: no order is accepted in between. Under halt,
cancels of orders that the broker has wait until trading is resumed or cancel-only.
A halt applies from the next send on and survives restarts. If an instrument and the whole market have different
states, the stricter one applies.`,
  values: {
    status: ["<status>", "list: only this status: pending, sending, succeeded, failed, aborted or unknown"],
    instrument: ["<name>", "list, cancel-all: only this instrument"],
    limit: ["<n>", "list: maximum number of orders (default 50)"],
    after: ["<cursor>", "list: start after this cursor; the output ends with the next one"],
    caller: ["<name>", "show, resolve: the caller, if several callers used the same key; cancel-all: only this caller"],
    as: ["<taken|not-taken>", "resolve: whether the broker has the order"],
    "broker-order-id": ["<id>", "resolve --as taken: the broker's id of the order"],
    reason: ["<text>", "the reason, recorded"],
    by: ["<name>", "your name, recorded (default: the current user)"],
  },
  switches: {
    unresolved: "list: only unresolved orders",
    yes: "resolve: do not ask for confirmation; cancel-all: required",
    json: "print JSON",
  },
  takesArgs: true,
  run: (call) => runSubcommand(subcommands, call),
};
