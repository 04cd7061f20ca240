/**
 * Orders as an operator runs them: processes of `todoke serve orders` on one database, the broker simulator as a process of
 * its own, and the command line. Every process can be killed, or told to die at an exact step.
 */
import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testDatabase, until } from "@todoke/kernel/testing";
import * as orders from "@todoke/orders";
import { startSimulator } from "@todoke/orders/simulator/testing";
import { type Launched, launch, todoke } from "./serving.ts";

const token = "tdk_desk";

/** How long anything may take on a machine that has other work. */
export const patient = { withinMs: 120_000 };

export interface DeskOptions {
  readonly dedupes?: boolean;
  /** For so long after its timestamp the simulator takes an order. */
  readonly windowMs?: number;
  /** Of the simulator, besides its window. */
  readonly simulator?: readonly string[];
  /** Settings that differ from the usual ones. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface Answered {
  readonly status: number;
  readonly text: string;
  readonly body: { readonly code?: string; readonly status?: string; readonly reason_code?: string } & Record<
    string,
    unknown
  >;
  readonly headers: Headers;
}

export type OrdersSetup = Awaited<ReturnType<typeof openOrders>>;

/**
 * Unless a test says otherwise, leases, answers and the broker's window have so much time that an order takes no other steps
 * on a machine that stands still for a while.
 */
export async function openOrders({
  dedupes = false,
  windowMs = 10 * 60 * 1_000,
  simulator: more = [],
  settings = {},
}: DeskOptions = {}) {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "todoke-desk-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const t = parts.use(await testDatabase({ sets: [] }));
  const kind = dedupes ? [] : ["--no-dedupe"];
  const simulator = parts.use(await startSimulator("--window-ms", String(windowMs), ...kind, ...more));
  const env: Record<string, string> = {
    DATABASE_URL: t.url,
    LOG_LEVEL: "silent",
    TODOKE_API_KEYS: `desk=orders:write+read=${hash("sha256", token, "hex")}`,
    ORDERS_INSTRUMENTS: instrumentsIn(folder, 1_000),
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
    /** A process of the service, or one that may never come to serve. */
    async launch(own: Record<string, string> = {}): Promise<Launched> {
      return processes.use(await launch("orders", { ...env, ...own }));
    },
    async serve(own: Record<string, string> = {}): Promise<Launched> {
      const process = await this.launch(own);
      await process.serves();
      return process;
    },
    /** `todoke orders …`, words that hold spaces as they are. */
    command: (...words: readonly string[]) => runCommand(["orders", ...words], env),
    /** "pending>sending>succeeded" */
    async stepsOf(key: string): Promise<string> {
      const { rows } = await db.query(
        `select h.to_status from order_status_history h join outbox_orders o on o.id = h.order_row_id
          where o.idempotency_key = $1 order by h.place`,
        [key],
      );
      return rows.map((row) => row.to_status).join(">");
    },
    async statusOf(key: string): Promise<string | undefined> {
      const { rows } = await db.query(`select status from outbox_orders where idempotency_key = $1`, [key]);
      return rows[0]?.status;
    },
    /** As after an hour: no request that was sent before can be taken any more. */
    async anHourPasses(): Promise<void> {
      await db.query(
        `update outbox_orders set last_sent_at = last_sent_at - interval '1 hour', next_retry_at = now() where status = 'unknown'`,
      );
    },
    /** What the dead had in hand comes back at once, and not when their leases end. */
    async endLeases(): Promise<void> {
      await db.query(`update outbox_orders set lease_until = clock_timestamp() where status = 'sending'`);
    },
    async untilStatus(key: string, status: string): Promise<void> {
      await until(`${key} is ${status}`, async () => (await this.statusOf(key)) === status, patient);
    },
    async untilAllEnded(): Promise<void> {
      const open = `select from outbox_orders where status not in ('succeeded', 'aborted')`;
      await until("all orders have ended", async () => (await db.query(open)).rowCount === 0, patient);
    },
    /** What the broker has taken, each as often as it has; and what we say that it has. */
    async books(): Promise<{ readonly theirs: readonly string[]; readonly ours: readonly string[] }> {
      const { rows } = await db.query(`select client_order_id from outbox_orders where status = 'succeeded'`);
      return {
        theirs: simulator
          .taken()
          .map((order) => order.client_order_id)
          .toSorted(),
        ours: rows.map((row) => row.client_order_id as string).toSorted(),
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** A list of instruments, with so many orders in a second. */
export function instrumentsIn(folder: string, ordersPerSecond: number): string {
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

/** An order that is taken in. */
export const orderOf = (key: string, more: object = {}) => ({
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

/** Sends an order as its caller does; the header has the body's key, unless another is named. */
export const place = (at: Url, body: { readonly idempotency_key: string }, key = body.idempotency_key) =>
  call(at, { method: "POST", path: "/do/order", headers: { "idempotency-key": key }, body });

export const look = (at: Url, path: string) => call(at, { method: "GET", path });

export const cancel = (at: Url, key: string) => call(at, { method: "POST", path: `/do/order/${key}/cancel` });

export const stop = (at: Url, mode: string, instrument?: string) =>
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

async function call({ url }: Url, { method, path, headers = {}, body }: Call): Promise<Answered> {
  const answer = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: JSON.parse(text), headers: answer.headers };
}

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function runCommand(words: readonly string[], env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [todoke, ...words], { env }, (error, out, err) =>
      resolve({ code: typeof error?.code === "number" ? error.code : error ? 1 : 0, out, err }),
    );
  });
}

const instrument = new URL("../chaos/patches/instrument.ts", import.meta.url).href;

/** Settings of a process that dies when it gets to a step for the n-th time (docs/chaos.md). */
export const dyingAt = (name: string, hit: number) => ({
  NODE_OPTIONS: `--import ${instrument}`,
  CHAOS_FAILPOINTS: JSON.stringify([{ name, action: "kill", hit }]),
});
