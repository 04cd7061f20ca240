/** Test harness: the service on a database of its own, and calls of its routes. */
import { hash } from "node:crypto";
import { bearerAuthentication, buildHttpApp, fixedKeys, tokenVerifier } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { longTimeouts, testDatabase } from "@todoke/kernel/testing";
import { type AcceptOptions, acceptOrder } from "./commands/accept-order.ts";
import { cancelAllOrders } from "./commands/cancel-all-orders.ts";
import { cancelOrder } from "./commands/cancel-order.ts";
import { resolveOrderAsStaff } from "./commands/resolve-order.ts";
import { setTradingState } from "./commands/set-trading-state.ts";
import { setTradingStateOfInstrument } from "./commands/set-trading-state-of-instrument.ts";
import { exposureLimits, readInstruments } from "./instruments/index.ts";
import type { OrderBody } from "./order/order-request.ts";
import { orderRoutes } from "./routes/index.ts";

const own = { name: "orders", dir: new URL("./migrations/", import.meta.url) };

/** Without a limit of orders per second. */
const instruments = readInstruments(
  `instruments:
  BTC-USD: { min_qty: 0.1, step: 0.1, max_qty: 10, max_notional: 1000000, tick: 0.5, reference_price: 50000 }
  ETH-USD: { min_qty: 1, step: 1, max_qty: 100, max_notional: 1000000 }
`,
  "test.yaml",
);

/** A valid order. */
export const bodyOf = (key: string, more: Partial<OrderBody> = {}): OrderBody => ({
  idempotency_key: key,
  order_id: `o-${key}`,
  instrument: "BTC-USD",
  side: "BUY",
  qty: 0.5,
  price: "30000.5",
  requested_at: "2026-01-31T09:30:00Z",
  ...more,
});

const keys = [
  { holder: "desk", scopes: ["orders:write", "read"] as const },
  { holder: "bot", scopes: ["orders:write", "read"] as const },
  { holder: "eyes", scopes: ["read"] as const },
  { holder: "auditor", scopes: ["read", "orders:read-all"] as const },
  { holder: "officer", scopes: ["orders:write", "orders:resume"] as const },
  { holder: "risk", scopes: ["orders:cancel-all", "orders:read-all", "read"] as const },
].map((key) => ({ ...key, sha256: hash("sha256", `tdk_${key.holder}`, "hex") }));

const hourMs = 60 * 60 * 1_000;

export async function createHarness() {
  const t = await testDatabase({ schema: "orders", sets: [kernelMigrations, own], pools: longTimeouts });
  const apps: { close(): Promise<unknown> }[] = [];

  /** Another instance of the service, which shares only the database with the others. */
  async function process(db: Db = t.open(), more: Partial<AcceptOptions> = {}) {
    const app = await buildHttpApp({ title: "orders", version: "0", log: { level: "silent" } });
    const tokenBearer = tokenVerifier({ audience: "orders", keys: [] });
    const settings = { ledgerMs: 48 * hourMs, keepMs: 90 * 24 * hourMs, reconciledWithinMs: null };
    const options = { db, instruments, ...more };
    orderRoutes(app, {
      db,
      authenticate: bearerAuthentication({ verifyApiKey: fixedKeys(keys), verifyToken: tokenBearer }),
      acceptOrder: acceptOrder({
        ...settings,
        adapter: "paper",
        limitsSlippage: true,
        onAccepted: () => {},
        ...options,
      }),
      cancelOrder: cancelOrder({ db, onAborted: () => {}, onRequested: () => {} }),
      cancelAllOrders: cancelAllOrders({ db, onAborted: () => {}, onRequested: () => {} }),
      limitsOf: exposureLimits(options.instruments),
      resolveOrderAsStaff: resolveOrderAsStaff(db, () => {}),
      setTradingState: setTradingState({ db, onChanged: () => {} }),
      setTradingStateOfInstrument: setTradingStateOfInstrument({ ...options, onChanged: () => {} }),
    });
    apps.push(app);
    const call = (method: "GET" | "POST" | "PUT", url: string, payload?: unknown, holder = "desk") =>
      app.inject({
        method,
        url,
        headers: {
          authorization: `Bearer tdk_${holder}`,
          ...(payload !== undefined && { "content-type": "application/json" }),
        },
        ...(payload !== undefined && { payload: JSON.stringify(payload) }),
      });
    return {
      app,
      /** The header has the body's key, unless `key` is given. */
      order: (body: object, { holder = "desk", key }: { holder?: string; key?: string } = {}) =>
        app.inject({
          method: "POST",
          url: "/do/order",
          headers: {
            "idempotency-key": key ?? String((body as { idempotency_key?: unknown }).idempotency_key),
            authorization: `Bearer tdk_${holder}`,
            "content-type": "application/json",
          },
          payload: JSON.stringify(body),
        }),
      get: (url: string, holder = "desk") => call("GET", url, undefined, holder),
      cancelAll: (body: object = {}, holder = "risk") => call("POST", "/v1/orders/cancel-all", body, holder),
      cancel: (key: string, holder = "desk") => call("POST", `/do/order/${key}/cancel`, undefined, holder),
      halt: (mode: string, instrument?: string, holder = "desk") => {
        const path = `/v1/orders/trading-state${instrument === undefined ? "" : `/${instrument}`}`;
        return call("PUT", path, { mode, reason: "a test" }, holder);
      },
    };
  }

  const count = async (table: string) => Number((await t.db.query(`select count(*) from ${table}`)).rows[0].count);
  return {
    ...t,
    process,
    /** Row counts of the tables that accepting an order writes. */
    rows: async () => ({
      orders: await count("outbox_orders"),
      ledger: await count("idempo_ledger"),
      history: await count("order_status_history"),
      events: await count("outbox_events"),
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all(apps.map((app) => app.close()));
      await t[Symbol.asyncDispose]();
    },
  };
}

/** The row counts after n accepted orders. */
export const rowCounts = (n: number) => ({ orders: n, ledger: n, history: n, events: n });
