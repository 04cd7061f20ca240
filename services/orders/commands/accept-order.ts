/**
 * Accepts an order, once per caller and key. Order, ledger, history and event are one commit, for all requests of a batch in one
 * statement. Only then can a worker send it.
 */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { type CommandResponse, keyConflict } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { checkOrder, type Instruments } from "../instruments/index.ts";
import { formatDecimal } from "../order/decimal.ts";
import {
  clientOrderId,
  type OrderBody,
  type OrderRequest,
  requestDigest,
  toStoredRequest,
} from "../order/order-request.ts";
import { orderIdUsed, orderRateExceeded, reconciliationFailing, tradingHalted } from "../problems.ts";
import { type AcceptResult, type AcceptRow, type AcceptSettings, acceptOrders } from "../store/accept-orders.ts";
import { hasKey } from "../store/orders.ts";

export interface AcceptOptions extends Omit<AcceptSettings, "ordersPerSecond"> {
  readonly db: Db;
  readonly instruments: Instruments;
  /** The broker of new orders. */
  readonly adapter: string;
  /** Whether that broker holds market orders to their max_slippage_bps. */
  readonly limitsSlippage: boolean;
  /** Called after every batch that accepted orders, with their number: wakes sender and relay. */
  readonly onAccepted: (orders: number) => void;
}

interface OrderToAccept {
  readonly caller: string;
  readonly body: OrderBody;
  /** The parsed body. */
  readonly order: OrderRequest;
}

export type AcceptOrder = (order: OrderToAccept) => Promise<CommandResponse>;

// Statements run while others wait for the disk.
const concurrency = 3;

export function acceptOrder(options: AcceptOptions): AcceptOrder {
  const { db, instruments, adapter, limitsSlippage, onAccepted, ...settings } = options;
  const ordersPerSecond = instruments.ordersPerSecond ?? null;
  const submit = createBatcher<AcceptRow, CommandResponse>({
    concurrency,
    conflictKeys: (row) => [`key ${row.caller}\n${row.idempotency_key}`, `order ${row.caller}\n${row.order_id}`],
    async run(rows) {
      const results = await acceptOrders(db, rows, { ...settings, ordersPerSecond });
      const accepted = results.filter(({ result }) => result === "first").length;
      if (accepted > 0) onAccepted(accepted);
      return results.map(toResponse);
    },
  });
  return async ({ caller, body, order }) => {
    const problem = checkOrder(order, { ...instruments, limitsSlippage });
    // An accepted order is replayed even if the list of instruments has changed since.
    if (problem && !(await hasKey(db, { caller, idempotencyKey: body.idempotency_key }))) throw problem;
    return submit(toRow({ caller, body, order }, adapter));
  };
}

const contentType = "application/json; charset=utf-8";

function toResponse(accepted: AcceptResult): CommandResponse | Error {
  switch (accepted.result) {
    case "first":
    case "replayed": {
      const replayed = accepted.result === "replayed";
      count("todoke.idempotency.requests", { result: accepted.result });
      return { status: replayed ? 200 : 201, contentType, body: accepted.body, replayed };
    }
    case "conflict":
      count("todoke.idempotency.requests", { result: "conflict" });
      return keyConflict();
    case "order_id_used":
      return orderIdUsed("This order_id was used under another key. Use a new order_id for a new order.");
    case "halted":
      return tradingHalted(`Trading is stopped (${accepted.detail}). Retry later.`, { retryAfterSeconds: 5 });
    case "not_reconciled":
      return reconciliationFailing(
        "Reconciliation with the broker has failed for 3 minutes. Orders are accepted again once it succeeds.",
        { retryAfterSeconds: 30 },
      );
    case "rate":
      return orderRateExceeded("The limit of orders per second is reached.", { retryAfterSeconds: 1 });
  }
}

function toRow({ caller, body, order }: OrderToAccept, adapter: string): AcceptRow {
  const { idempotency_key, trace_id } = body;
  return {
    caller,
    idempotency_key,
    order_id: order.order_id,
    user_id: order.user_id ?? null,
    client_order_id: clientOrderId(caller, idempotency_key),
    request: { ...toStoredRequest(order), trace_id },
    request_digest: requestDigest(body),
    adapter,
    instrument: order.instrument,
    side: order.side,
    qty: formatDecimal(order.qty),
    price: order.price && formatDecimal(order.price),
    headers: { ...(trace_id !== undefined && { trace_id }), ...traceHeaders() },
    event_id: randomUUIDv7(),
  };
}
