/**
 * Accepts an order, once per caller and key. Order, ledger, history and event are one commit, for all requests of a batch in one
 * statement. Only then can a worker send it.
 */
import { randomUUIDv7 } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import { type Db, transaction } from "@todoke/kernel/db";
import { type CommandResponse, keyConflict } from "@todoke/kernel/idempotency";
import { count, traceHeaders } from "@todoke/kernel/telemetry";
import { checkOrder, type Instruments } from "../instruments/index.ts";
import { type Decimal, formatDecimal } from "../order/decimal.ts";
import {
  clientOrderId,
  type OrderBody,
  type OrderRequest,
  requestDigest,
  toStoredRequest,
} from "../order/order-request.ts";
import {
  exposureLimitExceeded,
  orderIdUsed,
  orderRateExceeded,
  reconciliationFailing,
  tradingHalted,
} from "../problems.ts";
import { type AcceptResult, type AcceptRow, type AcceptSettings, acceptOrders } from "../store/accept-orders.ts";
import { hasKey } from "../store/orders.ts";
import { checkLimits, isLimited } from "./check-limits.ts";

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
      const results = await accept(rows);
      const accepted = results.filter(({ result }) => result === "first").length;
      if (accepted > 0) onAccepted(accepted);
      return results.map(toResponse);
    },
  });
  /** Orders for instruments with limits need a second statement, which has to see what committed before the lock. */
  async function accept(rows: readonly AcceptRow[]): Promise<readonly AcceptResult[]> {
    const accepting = { ...settings, ordersPerSecond };
    if (!rows.some((row) => isLimited(instruments, row))) return acceptOrders(db, rows, accepting);
    return transaction(db, async (tx) =>
      acceptOrders(tx, await checkLimits(tx, rows, { adapter, instruments }), accepting),
    );
  }

  return async ({ caller, body, order }) => {
    const problem = checkOrder(order, { ...instruments, limitsSlippage });
    // An accepted order is replayed even if the list of instruments has changed since.
    if (problem && !(await hasKey(db, { caller, idempotencyKey: body.idempotency_key }))) throw problem;
    const referencePrice = instruments.byName.get(order.instrument)?.reference_price;
    return submit(toRow({ caller, body, order }, { adapter, referencePrice }));
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
    case "over_limit":
      return exposureLimitExceeded(`${accepted.detail}.`, {
        fields: [{ field: "body.qty", detail: "is too large for the limits of the instrument" }],
      });
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

interface RowContext {
  readonly adapter: string;
  readonly referencePrice: Decimal | undefined;
}

function toRow({ caller, body, order }: OrderToAccept, { adapter, referencePrice }: RowContext): AcceptRow {
  const { idempotency_key, trace_id } = body;
  const exposurePrice = order.price ?? referencePrice;
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
    exposure_price: exposurePrice ? formatDecimal(exposurePrice) : null,
    headers: { ...(trace_id !== undefined && { trace_id }), ...traceHeaders() },
    event_id: randomUUIDv7(),
  };
}
