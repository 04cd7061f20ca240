/**
 * Takes an order in: once per key, whoever asks again and wherever. Order, ledger, history and event commit together, for
 * every request of a batch in one statement; only then can anybody send it.
 */
import { randomUUIDv7 } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { type Answer, idempotencyConflict } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { textOfDecimal } from "../decimal.ts";
import { type Instruments, refuseOrder } from "../instruments/index.ts";
import { clientOrderId, keptRequest, type OrderBody, type OrderRequest, requestDigest } from "../order-request.ts";
import { orderIdUsed, orderRateExceeded, reconciliationFailing, tradingHalted } from "../problems.ts";
import { type AcceptResult, type AcceptRow, type AcceptSettings, acceptOrders } from "../store/accept-orders.ts";
import { knowsKey } from "../store/orders.ts";

export interface AcceptOptions extends Omit<AcceptSettings, "ordersPerSecond"> {
  readonly db: Db;
  readonly instruments: Instruments;
  /** The broker that new orders go to. */
  readonly adapter: string;
  /** Whether that broker holds orders at the market's price to their max_slippage_bps. */
  readonly limitsSlippage: boolean;
  /** Hears of every batch that took orders in, with how many they were: the wake-up of sender and relay. */
  readonly onAccepted: (orders: number) => void;
}

interface OrderToAccept {
  readonly caller: string;
  readonly body: OrderBody;
  /** The body, its decimals exact. */
  readonly order: OrderRequest;
}

export type AcceptOrder = (order: OrderToAccept) => Promise<Answer>;

// One batch is carried out while another waits for the disk.
const lanes = 3;

export function acceptOrder(options: AcceptOptions): AcceptOrder {
  const { db, instruments, adapter, limitsSlippage, onAccepted, ...settings } = options;
  const ordersPerSecond = instruments.ordersPerSecond ?? null;
  const submit = gather<AcceptRow, Answer>({
    lanes,
    touches: (row) => [`key ${row.caller}\n${row.idempotency_key}`, `order ${row.caller}\n${row.order_id}`],
    async run(rows) {
      const results = await acceptOrders(db, rows, { ...settings, ordersPerSecond });
      const accepted = results.filter(({ result }) => result === "first").length;
      if (accepted > 0) onAccepted(accepted);
      return results.map(toldOf);
    },
  });
  return async ({ caller, body, order }) => {
    const refused = refuseOrder(order, { ...instruments, limitsSlippage });
    // What was taken in is answered as it was, also when the list of instruments has changed since.
    if (refused && !(await knowsKey(db, { caller, idempotencyKey: body.idempotency_key }))) throw refused;
    return submit(rowOf({ caller, body, order }, adapter));
  };
}

const contentType = "application/json; charset=utf-8";

function toldOf(told: AcceptResult): Answer | Error {
  switch (told.result) {
    case "first":
    case "replayed": {
      const replayed = told.result === "replayed";
      count("todoke.idempotency.requests", { result: told.result });
      return { status: replayed ? 200 : 201, contentType, body: told.answer, replayed };
    }
    case "conflict":
      count("todoke.idempotency.requests", { result: "conflict" });
      return idempotencyConflict("this key was first sent with another order; use a new key for a new order");
    case "order_id_used":
      return orderIdUsed("this order_id was ordered under another key; use a new order_id for a new order");
    case "halted":
      return tradingHalted(`trading is stopped (${told.detail}); send it again later`, { retryAfterSeconds: 5 });
    case "not_reconciled":
      return reconciliationFailing("the broker's books could not be compared for 3 minutes", { retryAfterSeconds: 30 });
    case "rate":
      return orderRateExceeded("no more orders are taken in this second", { retryAfterSeconds: 1 });
  }
}

function rowOf({ caller, body, order }: OrderToAccept, adapter: string): AcceptRow {
  const { idempotency_key, trace_id } = body;
  return {
    caller,
    idempotency_key,
    order_id: order.order_id,
    user_id: order.user_id ?? null,
    client_order_id: clientOrderId(caller, idempotency_key),
    request: { ...keptRequest(order), trace_id },
    request_digest: requestDigest(body),
    adapter,
    instrument: order.instrument,
    side: order.side,
    qty: textOfDecimal(order.qty),
    price: order.price && textOfDecimal(order.price),
    headers: { ...(trace_id !== undefined && { trace_id }), ...traceHeaders() },
    event_id: randomUUIDv7(),
  };
}
