/** Compares our orders of the last day with the books of a broker. It reads both, and changes neither. */
import type { Db } from "@todoke/kernel/db";
import type { Books, BrokerResult } from "../brokers/index.ts";
import { clientOrderIdPrefix } from "../order/order-request.ts";
import { type LocalOrder, type SucceededRange, selectLocalOrders, selectSucceeded } from "../store/reconciliations.ts";

export interface Mismatch {
  readonly clientOrderId: string;
  /** not-ours: the broker took an order under one of our IDs that we do not have. missing: the broker does not list it. */
  readonly kind: "not-ours" | "missing" | "taken-though-ended" | "taken-though-waiting" | "different";
  readonly detail: string;
}

const dayMs = 24 * 60 * 60 * 1_000;
// The broker's list is read from an hour earlier than ours, because the two clocks may differ.
const clockMarginMs = 60 * 60 * 1_000;
const pageMax = 500;
const ordersMax = 1_000_000;

export interface Comparison {
  readonly db: Db;
  readonly broker: Books;
  /** The database's time. */
  readonly startedAt: Date;
  readonly signal: AbortSignal;
}

/** Rejects if the broker has more orders than a comparison can hold. */
export async function compareBooks({ db, broker, startedAt, signal }: Comparison) {
  const from = new Date(startedAt.getTime() - dayMs);
  /** The broker's IDs by ours. */
  const brokerOrderIds = new Map<string, string>();
  const mismatches: Mismatch[] = [];
  const page: BrokerResult[] = [];
  const comparePage = async () => {
    const remote = page.splice(0);
    const [ids, qtys] = [remote.map((each) => each.clientOrderId), remote.map((each) => each.qty)];
    const local = await selectLocalOrders(db, { ids, qtys });
    for (const each of remote) {
      const { clientOrderId, brokerOrderId } = each;
      const before = brokerOrderIds.get(clientOrderId);
      // An order that is taken while the list is read may be on two of its pages.
      if (before === brokerOrderId) continue;
      const context = { adapter: broker.name, isSecond: before !== undefined };
      const mismatch = findMismatch(each, local.get(clientOrderId), context);
      if (mismatch) mismatches.push({ clientOrderId, ...mismatch });
      brokerOrderIds.set(clientOrderId, brokerOrderId);
    }
  };
  for await (const result of broker.list(new Date(from.getTime() - clockMarginMs), signal)) {
    if (!result.clientOrderId.startsWith(clientOrderIdPrefix)) continue;
    page.push(result);
    if (brokerOrderIds.size + page.length > ordersMax)
      throw new Error(`the broker's list has more than ${ordersMax} orders`);
    if (page.length === pageMax) await comparePage();
  }
  await comparePage();
  for await (const clientOrderId of succeededOrders(db, { adapter: broker.name, from, to: startedAt })) {
    signal.throwIfAborted();
    if (!brokerOrderIds.has(clientOrderId))
      mismatches.push({ clientOrderId, kind: "missing", detail: "the broker does not list it" });
  }
  return { seen: brokerOrderIds.size, mismatches };
}

async function* succeededOrders(db: Db, range: SucceededRange): AsyncIterable<string> {
  for (let after = "0"; ; ) {
    const page = await selectSucceeded(db, { ...range, after, limit: pageMax });
    for (const { id, clientOrderId } of page) {
      after = id;
      yield clientOrderId;
    }
    if (page.length < pageMax) return;
  }
}

interface MismatchContext {
  readonly adapter: string;
  /** The broker lists another order under the same client order ID. */
  readonly isSecond: boolean;
}

function findMismatch(
  remote: BrokerResult,
  local: LocalOrder | undefined,
  { adapter, isSecond }: MismatchContext,
): Omit<Mismatch, "clientOrderId"> | undefined {
  const { brokerOrderId, instrument, side, qty } = remote;
  if (!local) return { kind: "not-ours", detail: `the broker has it as ${brokerOrderId}` };
  if (local.adapter !== adapter) return { kind: "different", detail: `we sent it to ${local.adapter}` };
  if (isSecond) return { kind: "different", detail: `the broker took it twice; the second is ${brokerOrderId}` };
  if (local.status === "aborted") return { kind: "taken-though-ended", detail: "we have it as aborted" };
  if (local.status === "pending" || local.status === "failed")
    return { kind: "taken-though-waiting", detail: `we have it as ${local.status}` };
  if (local.instrument !== instrument || local.side !== side || !local.sameQty)
    return { kind: "different", detail: `the broker has ${side} ${qty} ${instrument}` };
  if (local.brokerOrderId !== null && local.brokerOrderId !== brokerOrderId)
    return { kind: "different", detail: `the broker has it as ${brokerOrderId}, we as ${local.brokerOrderId}` };
  return undefined;
}
