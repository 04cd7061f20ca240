/**
 * Compares our books with the broker's, at the start and every minute: looks at all that was taken within a day. What the
 * two sides do not agree on is a mismatch: counted, told and kept, and left to a person, for a machine that mends books hides
 * what broke them. Beside the comparison, and without holding it up, the broker is asked about every order in doubt.
 */
import type { Db } from "@todoke/kernel/db";
import { describeError, periodically } from "@todoke/kernel/worker";
import type { Broker, BrokerResult } from "../brokers/index.ts";
import { clientOrderIdPrefix } from "../order-request.ts";
import { askBroker } from "./ask-broker.ts";
import type { SenderSettings } from "./send-orders.ts";
import { doubtsOfOnePass } from "./store.ts";
import {
  type BookedOrder,
  failReconciliation,
  finishReconciliation,
  type Succeeded,
  selectBooked,
  selectSucceeded,
  startReconciliation,
} from "./store-reconcile.ts";
import { type Tell, tellNobody } from "./tell.ts";

export interface Mismatch {
  readonly clientOrderId: string;
  /** not-ours: taken under a name of ours that we do not know. missing: we have it as taken, the broker does not. */
  readonly kind: "not-ours" | "missing" | "taken-though-ended" | "taken-though-waiting" | "different";
  readonly detail: string;
}

export interface ReconcilerOptions {
  readonly db: Db;
  readonly broker: Broker;
  readonly settings: SenderSettings;
  readonly everyMs?: number;
  readonly tell?: Tell;
  /** Hears of the mismatches of every look. */
  readonly onMismatches?: (mismatches: readonly Mismatch[]) => void;
  readonly onError: (error: unknown) => void;
}

const dayMs = 24 * 60 * 60 * 1_000;
const pageMax = 500;
// A look that takes longer than this has failed; so does one at a day with more orders than this.
const lookMaxMs = 10 * 60 * 1_000;
const ordersMax = 1_000_000;
const detailsMax = 100;

/**
 * Two loops, for a comparison must not wait until every order in doubt has been asked about: at a slow broker that can take
 * longer than new orders may be taken without one (ORDERS_REQUIRE_RECONCILIATION).
 */
export function startReconciler(options: ReconcilerOptions): AsyncDisposable {
  const { everyMs = 60_000, onError } = options;
  const comparing = periodically((stopping) => reconcile(options, stopping), {
    everyMs,
    what: "reconciling with the broker",
    onError,
  });
  const asking = periodically((stopping) => askAboutDoubts(options, stopping), {
    everyMs,
    what: "asking about the orders in doubt",
    onError,
  });
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([comparing, asking].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** One comparison. Rejects where it could not be finished; `reconciliations` says so too. */
export async function reconcile(options: ReconcilerOptions, stopping?: AbortSignal): Promise<readonly Mismatch[]> {
  const { db, broker, onMismatches, onError } = options;
  const startedAt = await startReconciliation(db, broker.name);
  const signal = AbortSignal.any([AbortSignal.timeout(lookMaxMs), ...(stopping ? [stopping] : [])]);
  try {
    const { seen, mismatches } = await compare({ db, broker, startedAt, signal });
    const details = mismatches.slice(0, detailsMax);
    await finishReconciliation(db, broker.name, { seen, mismatches: mismatches.length, details });
    onMismatches?.(mismatches);
    return mismatches;
  } catch (error) {
    await failReconciliation(db, broker.name, describeError(error)).catch(onError);
    throw error;
  }
}

/** One pass: asks once about every order that is in doubt when it begins, whenever the order would be due. */
export async function askAboutDoubts(options: ReconcilerOptions, stopping?: AbortSignal): Promise<void> {
  const { db, broker, settings, tell = tellNobody, onError } = options;
  const asker = askBroker({ db, broker, settings, tell, onError, claims: await doubtsOfOnePass(db) });
  try {
    for (let more = true; more && !stopping?.aborted; ) more = (await asker.runOnce()).claimed > 0;
  } finally {
    await asker.stop();
  }
}

interface Comparison {
  readonly db: Db;
  readonly broker: Broker;
  readonly startedAt: Date;
  readonly signal: AbortSignal;
}

async function compare(look: Comparison): Promise<{ seen: number; mismatches: Mismatch[] }> {
  const { db, broker, startedAt, signal } = look;
  const since = new Date(startedAt.getTime() - dayMs);
  /** What the broker calls each. */
  const atBroker = new Map<string, string>();
  const mismatches: Mismatch[] = [];
  const page: BrokerResult[] = [];
  const comparePage = async () => {
    const theirs = page.splice(0);
    const [ids, qtys] = [theirs.map((each) => each.clientOrderId), theirs.map((each) => each.qty)];
    const ours = await selectBooked(db, { ids, qtys });
    for (const each of theirs) {
      const { clientOrderId, brokerOrderId } = each;
      const before = atBroker.get(clientOrderId);
      // One that was taken while its list was read may stand on two pages of it.
      if (before === brokerOrderId) continue;
      const mismatch = mismatchOf(each, ours.get(clientOrderId), {
        adapter: broker.name,
        isSecond: before !== undefined,
      });
      if (mismatch) mismatches.push({ clientOrderId, ...mismatch });
      atBroker.set(clientOrderId, brokerOrderId);
    }
  };
  // An hour more than we ask of our own books: the two clocks need not agree.
  for await (const result of broker.list(new Date(since.getTime() - dayMs / 24), signal)) {
    if (!result.clientOrderId.startsWith(clientOrderIdPrefix)) continue;
    page.push(result);
    if (atBroker.size + page.length > ordersMax) throw new Error(`the broker's list has more than ${ordersMax} orders`);
    if (page.length === pageMax) await comparePage();
  }
  await comparePage();
  for await (const clientOrderId of succeededOrders(db, { adapter: broker.name, from: since, to: startedAt })) {
    signal.throwIfAborted();
    if (!atBroker.has(clientOrderId)) {
      mismatches.push({ clientOrderId, kind: "missing", detail: "the broker does not list it" });
    }
  }
  return { seen: atBroker.size, mismatches };
}

/** Only those that had ended when the look began: the broker's list was read after that. */
async function* succeededOrders(db: Db, those: Succeeded): AsyncIterable<string> {
  for (let after = "0"; ; ) {
    const page = await selectSucceeded(db, { ...those, after, limit: pageMax });
    for (const { id, clientOrderId } of page) {
      after = id;
      yield clientOrderId;
    }
    if (page.length < pageMax) return;
  }
}

type Difference = Omit<Mismatch, "clientOrderId">;

interface Listed {
  readonly adapter: string;
  /** The broker lists another by this name. */
  readonly isSecond: boolean;
}

function mismatchOf(
  theirs: BrokerResult,
  ours: BookedOrder | undefined,
  { adapter, isSecond }: Listed,
): Difference | undefined {
  if (!ours) return { kind: "not-ours", detail: `the broker calls it ${theirs.brokerOrderId}` };
  if (ours.adapter !== adapter) return { kind: "different", detail: `we have it as sent to ${ours.adapter}` };
  if (isSecond) return { kind: "different", detail: `it was taken twice; the second is ${theirs.brokerOrderId}` };
  if (ours.status === "aborted") return { kind: "taken-though-ended", detail: "we have it as not carried out" };
  if (ours.status === "pending" || ours.status === "failed") {
    return { kind: "taken-though-waiting", detail: `we have it as ${ours.status}` };
  }
  if (ours.instrument !== theirs.instrument || ours.side !== theirs.side || !ours.sameQty) {
    return { kind: "different", detail: `the broker has ${theirs.side} ${theirs.qty} ${theirs.instrument}` };
  }
  if (ours.brokerOrderId !== null && ours.brokerOrderId !== theirs.brokerOrderId) {
    return { kind: "different", detail: `the broker calls it ${theirs.brokerOrderId}, and we ${ours.brokerOrderId}` };
  }
  return undefined;
}
