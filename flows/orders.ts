/**
 * The orders service as an operator runs it: processes of `todoke serve orders` on one database, the broker simulator as its
 * more process, and the command line. Every process can be killed, at a failpoint too.
 */
import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as orders from "@todoke/orders";
import { startSimulator } from "@todoke/orders/simulator/testing";
import { type LaunchedProcess, launch, todoke } from "./service-process.ts";

const token = "tdk_desk";

/** For a busy machine. */
export const longWait = { withinMs: 120_000 };

export interface OrdersOptions {
  readonly dedupes?: boolean;
  /** How long after its timestamp the simulator accepts an order. */
  readonly windowMs?: number;
  /** Further arguments of the simulator. */
  readonly simulator?: readonly string[];
  /** Settings that override the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface OrderResponse {
  readonly status: number;
  readonly text: string;
  readonly body: { readonly code?: string; readonly status?: string; readonly reason_code?: string } & Record<
    string,
    unknown
  >;
  readonly headers: Headers;
}

export type OrdersSetup = Awaited<ReturnType<typeof openOrders>>;

/** By default leases, timeouts and the broker's window are long, so that a slow machine causes no extra steps. */
export async function openOrders({
  dedupes = false,
  windowMs = 10 * 60 * 1_000,
  simulator: more = [],
  settings = {},
}: OrdersOptions = {}) {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-orders-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const t = parts.use(await testDatabase({ sets: [] }));
  const kind = dedupes ? [] : ["--no-dedupe"];
  const simulator = parts.use(await startSimulator("--window-ms", String(windowMs), ...kind, ...more));
  const env: Record<string, string> = {
    DATABASE_URL: t.url,
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `desk=orders:write+read=${hash("sha256", token, "hex")}`,
    ORDERS_INSTRUMENTS: writeInstruments(folder, 1_000),
    ORDERS_BROKER: "http",
    ORDERS_BROKER_URL: simulator.url.href,
    ORDERS_BROKER_SECRET: simulator.secret,
    ORDERS_BROKER_DEDUPES: String(dedupes),
    ORDERS_BROKER_WINDOW_MS: String(windowMs),
    ORDERS_BROKER_TIMEOUT_MS: "60000",
    ORDERS_LEASE_MS: "120000",
    ORDERS_POLL_MS: "100",
    ORDERS_BACKOFF_SECONDS: "0.1,0.1,0.1",
    ...settings,
  };
  await orders.migrate(env, { dryRun: false });

  const processes = parts.use(new AsyncDisposableStack());
  const db = t.open({ schema: "orders" });
  const all = parts.move();
  return {
    folder,
    simulator,
    db,
    /** Starts a process that may die before it serves. */
    async launch(more: Record<string, string> = {}): Promise<LaunchedProcess> {
      return processes.use(await launch("orders", { ...env, ...more }));
    },
    async serve(more: Record<string, string> = {}): Promise<LaunchedProcess> {
      const process = await this.launch(more);
      await process.serves();
      return process;
    },
    /** Runs `todoke orders …`. */
    command: (...args: readonly string[]) => runCommand(["orders", ...args], env),
    /** "pending>sending>succeeded" */
    async statusHistory(key: string): Promise<string> {
      const { rows } = await db.query(
        `select h.to_status from order_status_history h join outbox_orders o on o.id = h.order_row_id
          where o.idempotency_key = $1 order by h.place`,
        [key],
      );
      return rows.map((row) => row.to_status).join(">");
    },
    async getStatus(key: string): Promise<string | undefined> {
      const { rows } = await db.query(`select status from outbox_orders where idempotency_key = $1`, [key]);
      return rows[0]?.status;
    },
    /** Moves sent times back an hour, so that the broker can no longer take an earlier request. */
    async skipHour(): Promise<void> {
      await db.query(
        `update outbox_orders set last_sent_at = last_sent_at - interval '1 hour', next_retry_at = now() where status = 'unknown'`,
      );
    },
    /** Expires the leases of dead senders now. */
    async expireLeases(): Promise<void> {
      await db.query(`update outbox_orders set lease_until = clock_timestamp() where status = 'sending'`);
    },
    async waitForStatus(key: string, status: string): Promise<void> {
      await until(`${key} is ${status}`, async () => (await this.getStatus(key)) === status, longWait);
    },
    async waitUntilAllEnded(): Promise<void> {
      const open = `select from outbox_orders where status not in ('succeeded', 'aborted')`;
      await until("all orders have ended", async () => (await db.query(open)).rowCount === 0, longWait);
    },
    /** The broker's orders, duplicates included, and the orders that we recorded as taken. */
    async takenOrders(): Promise<{ readonly broker: readonly string[]; readonly local: readonly string[] }> {
      const { rows } = await db.query(`select client_order_id from outbox_orders where status = 'succeeded'`);
      return {
        broker: simulator
          .taken()
          .map((order) => order.client_order_id)
          .toSorted(),
        local: rows.map((row) => row.client_order_id as string).toSorted(),
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Writes a file of instruments with a limit on orders per second. */
export function writeInstruments(folder: string, ordersPerSecond: number): string {
  const file = join(folder, `instruments-${ordersPerSecond}.yaml`);
  writeFileSync(
    file,
    `limits: { orders_per_second: ${ordersPerSecond} }
instruments:
  BTC-USD: { min_qty: 0.1, step: 0.1, max_qty: 10, max_notional: 1000000, tick: 0.5, reference_price: 50000 }
  ETH-USD: { min_qty: 1, step: 1, max_qty: 100, max_notional: 1000000 }
`,
  );
  return file;
}

/** A valid order. */
export const sampleOrder = (key: string, more: object = {}) => ({
  idempotency_key: key,
  order_id: `o-${key}`,
  instrument: "BTC-USD",
  side: "BUY",
  qty: "0.5",
  price: "30000.5",
  requested_at: "2026-01-31T09:30:00Z",
  ...more,
});

type Url = { readonly url: string };

/** Sends an order; the header has the body's key unless `key` differs. */
export const placeOrder = (at: Url, body: { readonly idempotency_key: string }, key = body.idempotency_key) =>
  call(at, { method: "POST", path: "/do/order", headers: { "idempotency-key": key }, body });

export const get = (at: Url, path: string) => call(at, { method: "GET", path });

export const cancel = (at: Url, key: string) => call(at, { method: "POST", path: `/do/order/${key}/cancel` });

export const setTradingState = (at: Url, mode: string, instrument?: string) =>
  call(at, {
    method: "PUT",
    path: `/v1/orders/trading-state${instrument === undefined ? "" : `/${instrument}`}`,
    body: { mode, reason: "a flow" },
  });

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

async function call({ url }: Url, { method, path, headers = {}, body }: Call): Promise<OrderResponse> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text), headers: response.headers };
}

interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function runCommand(args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  return new Promise((resolve) => {
    execFile(process.execPath, [todoke, ...args], { env }, (error, out, err) =>
      resolve({ code: typeof error?.code === "number" ? error.code : error ? 1 : 0, out, err }),
    );
  });
}
