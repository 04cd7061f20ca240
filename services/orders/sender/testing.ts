/**
 * What the tests of the sender share: a database with orders in it, and settings under which nothing takes long. Leases,
 * answers and the broker's window have so much time that no machine is too slow for them; where one of them is to be over, a
 * test says so.
 */

import { kernelMigrations } from "@todoke/kernel/migrations";
import { fixedId, patient, testDatabase } from "@todoke/kernel/testing";
import { clientOrderId } from "../order-request.ts";
import { acceptOrders } from "../store/accept-orders.ts";
import type { SenderSettings } from "./send-orders.ts";

const own = { name: "orders", dir: new URL("../migrations/", import.meta.url) };

export const quick: SenderSettings = {
  concurrency: 4,
  leaseMs: 120_000,
  pollMs: 20,
  timeoutMs: 60_000,
  perSecond: 0,
  backoff: { waitsMs: [1, 1, 1, 1, 1, 1] },
};

/** Of the broker on paper. */
export const windowMs = 10 * 60 * 1_000;

export interface OrderState {
  readonly status: string;
  readonly attempts: number;
  readonly last_error_code: string | null;
}

/** Orders that are accepted go to the adapter. */
export async function setup({ adapter = "paper" }: { readonly adapter?: string } = {}) {
  const t = await testDatabase({ schema: "orders", sets: [kernelMigrations, own], pools: patient });
  const rows = async (text: string, ...values: unknown[]) => (await t.db.query(text, values)).rows;
  return {
    ...t,
    rows,

    /** Orders that were accepted, by number; of the instrument, if one is named. */
    async accept(numbers: readonly number[], instrument = "USDJPY"): Promise<void> {
      const wanted = numbers.map((n) => ({
        caller: "shop",
        idempotency_key: `key-${n}`,
        order_id: `order-${n}`,
        user_id: null,
        client_order_id: clientOrderId("shop", `key-${n}`),
        request: { time_in_force: "IOC" },
        request_digest: `sha256:${n}`,
        adapter,
        instrument,
        side: "BUY",
        qty: "1.50",
        price: null,
        headers: {},
        event_id: fixedId(n),
      }));
      const settings = { ledgerMs: 3_600_000, keepMs: 3_600_000, ordersPerSecond: null, reconciledWithinMs: null };
      await acceptOrders(t.db, wanted, settings);
    },

    states: async (): Promise<OrderState[]> =>
      rows(`select status, attempts, last_error_code from outbox_orders order by id`),

    /** "pending>sending>succeeded", of the first order. */
    steps: async (): Promise<string> =>
      (await rows(`select to_status from order_status_history where order_row_id = 1 order by place`))
        .map((row) => row.to_status)
        .join(">"),

    events: async (): Promise<string[]> =>
      (await rows(`select event_type from outbox_events order by position`)).map((row) => row.event_type),

    /** As after an hour: the window of every request is over. */
    async minutesPass(): Promise<void> {
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
