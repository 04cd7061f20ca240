/**
 * Test harness of the workers. Leases, timeouts and the broker's window are so long that no machine is too slow for them; a test that
 * needs one to be over says so.
 */
import { kernelMigrations } from "@todoke/kernel/migrations";
import { fixedId, longTimeouts, testDatabase, until } from "@todoke/kernel/testing";
import { type Fault, faultPlan } from "../../brokers/faults.ts";
import type { Broker } from "../../brokers/index.ts";
import { openPaperBroker, paperMigrations } from "../../brokers/paper/index.ts";
import { fillPaperOrder, type Trade } from "../../brokers/paper/testing.ts";
import { clientOrderId } from "../../order/order-request.ts";
import { acceptOrders } from "../../store/accept-orders.ts";
import { checkUnresolved } from "../check-unresolved.ts";
import { followOrders } from "../follow-orders.ts";
import { sendOrders } from "../send-orders.ts";
import type { SenderSettings } from "../sender-options.ts";
import { noTelemetry, type SenderTelemetry } from "../sender-telemetry.ts";

const own = { name: "orders", dir: new URL("../../migrations/", import.meta.url) };

export const fastSettings: SenderSettings = {
  concurrency: 4,
  leaseMs: 120_000,
  pollMs: 20,
  timeoutMs: 60_000,
  perSecond: 0,
  backoffMs: [1, 1, 1, 1, 1, 1],
};

const windowMs = 10 * 60 * 1_000;

export interface OrderState {
  readonly status: string;
  readonly attempts: number;
  readonly last_error_code: string | null;
}

interface AcceptMore {
  readonly price?: string;
  readonly timeInForce?: "GTC";
}

/** A database with orders. Accepted orders go to the adapter. */
export async function createHarness({ adapter = "paper" }: { readonly adapter?: string } = {}) {
  const t = await testDatabase({
    schema: "orders",
    sets: [kernelMigrations, own],
    schemas: { paper_broker: [paperMigrations] },
    pools: longTimeouts,
  });
  const rows = async (text: string, ...values: unknown[]) => (await t.db.query(text, values)).rows;
  return {
    ...t,
    rows,

    /** Accepts orders by number. */
    async accept(numbers: readonly number[], instrument = "USDJPY", more: AcceptMore = {}): Promise<void> {
      const requests = numbers.map((n) => ({
        caller: "shop",
        idempotency_key: `key-${n}`,
        order_id: `order-${n}`,
        user_id: null,
        client_order_id: clientOrderId("shop", `key-${n}`),
        request: { time_in_force: more.timeInForce ?? "IOC" },
        request_digest: `sha256:${n}`,
        adapter,
        instrument,
        side: "BUY",
        qty: "1.50",
        price: more.price ?? null,
        exposure_price: more.price ?? null,
        headers: {},
        event_id: fixedId(n),
      }));
      const settings = { ledgerMs: 3_600_000, keepMs: 3_600_000, ordersPerSecond: null, reconciledWithinMs: null };
      await acceptOrders(t.db, requests, settings);
    },

    states: async (): Promise<OrderState[]> =>
      rows(`select status, attempts, last_error_code from outbox_orders order by id`),

    /** The states of the first order: "pending>sending>succeeded". */
    steps: async (): Promise<string> =>
      (await rows(`select to_status from order_status_history where order_row_id = 1 order by place`))
        .map((row) => row.to_status)
        .join(">"),

    events: async (): Promise<string[]> =>
      (await rows(`select event_type from outbox_events order by position`)).map((row) => row.event_type),

    /** An hour passes: the window of every request is over. */
    async passWindow(): Promise<void> {
      await t.db.query(
        `update outbox_orders set last_sent_at = last_sent_at - interval '1 hour', next_retry_at = now() where status = 'unknown'`,
      );
    },

    async makeDue(): Promise<void> {
      await t.db.query(`update outbox_orders set next_retry_at = now() where next_retry_at > now()`);
    },

    async trade(mode: "active" | "halt" | "cancel-only", scope = "*"): Promise<void> {
      await t.db.query(
        `insert into trading_state (scope, mode, reason, set_by) values ($1, $2, 'a test', 'test')
         on conflict (scope) do update set mode = excluded.mode`,
        [scope, mode],
      );
    },
  };
}

interface SenderHarnessOptions {
  readonly broker?: Partial<Broker>;
  readonly settings?: Partial<SenderSettings>;
  readonly telemetry?: Partial<SenderTelemetry>;
}

export type SenderHarness = Awaited<ReturnType<typeof createSenderHarness>>;

/** The same with a paper broker that fails on demand, and with workers that run when a test says so. */
export async function createSenderHarness({
  broker: overrides = {},
  settings = {},
  telemetry = {},
}: SenderHarnessOptions = {}) {
  const t = await createHarness();
  const plan = faultPlan();
  const paper = await openPaperBroker({ db: t.db, plan, slowMs: 200, windowMs });
  const sends: string[] = [];
  const broker: Broker = {
    ...paper,
    send(order, options) {
      sends.push(order.clientOrderId);
      return paper.send(order, options);
    },
    ...overrides,
  };
  const errors: unknown[] = [];
  const options = {
    db: t.db,
    broker,
    settings: { ...fastSettings, ...settings },
    telemetry: { ...noTelemetry, ...telemetry },
    onError: (error: unknown) => void errors.push(error),
  };
  const fault = (...wanted: readonly Fault[]) => plan.queue(...wanted);
  return {
    ...t,
    ...options,
    paper,
    sends,
    errors,
    fault,
    sender: sendOrders(options),
    checker: checkUnresolved(options),
    follower: followOrders(options),
    /** A trade at the paper broker with the order of this number. */
    fillAtBroker: (n: number, trade: Trade) => fillPaperOrder(t.db, clientOrderId("shop", `key-${n}`), trade),
    checkFillsNow: () => t.db.query(`update followed_orders set next_retry_at = now() where status = 'open'`),
  };
}

/** Leaves all orders as a crashed sender does: with an expired lease, before or after the dispatch was recorded. */
export async function crashSender(
  s: Pick<SenderHarness, "db">,
  { dispatched }: { readonly dispatched: boolean },
): Promise<void> {
  const at = dispatched ? "clock_timestamp()" : "null";
  await s.db.query(
    `update outbox_orders set status = 'sending', attempts = attempts + 1, lease_epoch = lease_epoch + 1,
            lease_until = now(), locked_by = 'crashed', in_doubt_since = ${at}, first_sent_at = ${at}, last_sent_at = ${at}`,
  );
}

/** Runs the sender once; between the claim of an order and its dispatch, `act` runs. */
export async function sendAfter(s: SenderHarness, act: () => Promise<unknown>) {
  const longTimeouts = { lockTimeoutMs: 120_000, statementTimeoutMs: 120_000, idleInTransactionTimeoutMs: 120_000 };
  const db = s.open(longTimeouts);
  const holder = await db.connect();
  try {
    await holder.query(`begin; lock table broker_turns`);
    const run = sendOrders({ ...s, db, settings: { ...s.settings, perSecond: 10 } }).runOnce();
    await until("it is claimed", async () => (await s.states())[0]?.status === "sending");
    await act();
    await holder.query("commit");
    return await run;
  } finally {
    holder.release(true);
  }
}
