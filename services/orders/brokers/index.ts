/**
 * The port to a trading broker. Two adapters pass one conformance suite.
 *
 * The hard part is honesty. A send without a reply is `unknown`, never a failure. `not-taken` needs proof, and a `find` returns it
 * only if no request of ours can be taken later. That rests on the timestamp of every request: the broker takes no order later
 * than its window (30 s) after it, by its own clock. So it refuses a request that a frozen process or a slow network delivers
 * late, and a broker that does not have an order when the window is over will never have it.
 */
import type { Db, MigrationSet } from "@todoke/kernel/db";
import type { Fault } from "./faults.ts";
import { openHttpBroker } from "./http/index.ts";
import { type Market, openPaperBooks, openPaperBroker, paperMigrations } from "./paper/index.ts";

export type { Market } from "./paper/index.ts";

export interface BrokerOrder {
  /** The order's ID at the broker: the same for every attempt, process and deploy. */
  readonly clientOrderId: string;
  readonly instrument: string;
  readonly side: "BUY" | "SELL";
  /** Decimals are strings, passed on exactly as they were ordered. */
  readonly qty: string;
  /** Null: a market order. */
  readonly price: string | null;
  readonly timeInForce: "IOC" | "FOK" | "GTC";
  /**
   * For a market order: how many basis points the fill price may be worse than the market's mid price when the order is taken; null:
   * any. A limit order is filled at its price or better.
   */
  readonly maxSlippageBps: number | null;
}

/** An order that the broker has taken. */
export interface BrokerResult {
  readonly clientOrderId: string;
  readonly brokerOrderId: string;
  readonly instrument: string;
  readonly side: string;
  readonly qty: string;
  readonly filledQty: string;
  /** The fill price; null if nothing was filled. */
  readonly price: string | null;
  readonly status: "filled" | "open" | "expired" | "cancelled";
  /** RFC 3339, by the broker's clock. */
  readonly takenAt: string;
  /** The fills so far, if the reply has them. */
  readonly fills?: readonly BrokerFill[];
}

/** One trade of an order. */
export interface BrokerFill {
  /** The broker's ID of the trade: the same however often the fill is returned. */
  readonly tradeId: string;
  readonly qty: string;
  readonly price: string;
  /** RFC 3339, by the broker's clock. */
  readonly filledAt: string;
}

/** `evidence` is the broker's raw reply. */
export type Taken = { readonly kind: "taken"; readonly result: BrokerResult; readonly evidence: string };
export type Rejected = { readonly kind: "rejected"; readonly reason: string; readonly evidence: string };

export type SendOutcome =
  | Taken
  | Rejected
  /** The broker has the order from an earlier request: `find` returns it. */
  | { readonly kind: "already-taken"; readonly reason: string }
  /** Only with proof. INTERNAL_ERROR: our own error, such as a wrong timestamp. */
  | {
      readonly kind: "not-taken";
      readonly code: "BROKER_DOWN" | "BROKER_RATE_LIMITED" | "INTERNAL_ERROR";
      readonly reason: string;
      readonly retryAfterMs?: number;
    }
  /** No reply (BROKER_TIMEOUT), one without a result (BROKER_DOWN), or one that we cannot parse (INTERNAL_ERROR). */
  | {
      readonly kind: "unknown";
      readonly code: "BROKER_TIMEOUT" | "BROKER_DOWN" | "INTERNAL_ERROR";
      readonly reason: string;
    };

type FindOutcome =
  | Taken
  | Rejected
  /** The broker does not have the order, and no request in flight can change that. */
  | { readonly kind: "not-taken" }
  /** The broker does not have the order, but a request in flight may still arrive. */
  | { readonly kind: "not-taken-yet" }
  | { readonly kind: "unknown"; readonly reason: string };

type FillsOutcome =
  | {
      readonly kind: "fills";
      /** In the order of the trades, after the given position. */
      readonly fills: readonly BrokerFill[];
      /** Of the last returned fill; null if there is none yet. */
      readonly position: string | null;
      readonly hasMore: boolean;
      /** The order, no older than the fills. */
      readonly order: BrokerResult;
    }
  /** The broker does not have the order, or rejected it. */
  | { readonly kind: "not-found"; readonly reason: string }
  | { readonly kind: "unknown"; readonly reason: string };

interface CancelOutcome {
  readonly kind: "cancelled" | "too-late" | "not-found" | "unknown";
  readonly reason: string;
}

/** What a broker has of us. */
export interface Books extends AsyncDisposable {
  readonly name: string;
  /** Every order taken since then, for reconciliation. Throws if the list is incomplete. */
  list(since: Date, signal: AbortSignal): AsyncIterable<BrokerResult>;
}

export interface Broker extends Books {
  /** The broker takes an order once per client order ID, however often it is sent. */
  readonly dedupes: boolean;
  /** How long after its timestamp a request may be taken, with a margin; 0 if the broker guarantees no end. */
  readonly windowMs: number;
  /** The broker's time as we know it, for the timestamp of the next request. */
  clock(): Date;
  /**
   * Called before an order is sent, so that its timestamp is the broker's time: an order that is stamped an hour ahead and has no
   * reply stays unresolved for that hour. Returns the reason if the clock is unknown. Never rejects.
   */
  measureClock(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Never rejects. The caller records the timestamp before; after the window the broker refuses the request. An order is rejected
   * without being sent if the broker cannot limit its slippage.
   */
  send(order: BrokerOrder, options: { readonly timestamp: Date; readonly signal: AbortSignal }): Promise<SendOutcome>;
  /** Looks an order up. `lastSentAt` is the timestamp of the last request for it. Never rejects. */
  find(
    clientOrderId: string,
    options: { readonly lastSentAt: Date; readonly signal: AbortSignal },
  ): Promise<FindOutcome>;
  /** Never rejects. */
  cancel(clientOrderId: string, signal: AbortSignal): Promise<CancelOutcome>;
  /** The fills of an order after a position; null: from the first. Never rejects. */
  fills(
    clientOrderId: string,
    options: { readonly after: string | null; readonly signal: AbortSignal },
  ): Promise<FillsOutcome>;
}

/** The names of all adapters, as `outbox_orders.adapter` has them. */
export const adapterNames: readonly BrokerSettings["kind"][] = ["paper", "http"];

interface PaperBrokerSettings {
  readonly kind: "paper";
  /** Injected faults and their chances, for rehearsals. */
  readonly faults?: ReadonlyMap<Fault, number>;
  /** The same seed gives the same prices. */
  readonly seed: number;
}

export interface HttpBrokerSettings {
  readonly kind: "http";
  readonly url: URL;
  readonly secret: string;
  readonly dedupes: boolean;
  /** How long after its timestamp the broker may take an order; 0 if it guarantees no end. */
  readonly windowMs: number;
  /** Whether it holds market orders to their max_slippage_bps. */
  readonly limitsSlippage: boolean;
}

export type BrokerSettings = PaperBrokerSettings | HttpBrokerSettings;

/** Whether the broker holds market orders to their max_slippage_bps. */
export const limitsSlippage = (settings: BrokerSettings): boolean =>
  settings.kind === "paper" || settings.limitsSlippage;

/** The paper broker's schema, for `todoke migrate`: the role of a running service may not be allowed to create it. */
export const brokerSchemas = (env: {
  readonly ORDERS_BROKER?: string | undefined;
}): Readonly<Record<string, readonly MigrationSet[]>> =>
  env.ORDERS_BROKER === "http" ? {} : { paper_broker: [paperMigrations] };

export interface BrokerParts {
  /** The service's own pool; the paper broker has a schema beside the service's. */
  readonly db: Db;
  /** The markets of the paper broker. */
  readonly markets: ReadonlyMap<string, Market>;
  readonly onDrift?: (driftMs: number) => void;
}

export async function openBroker(settings: BrokerSettings, { db, markets, onDrift }: BrokerParts): Promise<Broker> {
  if (settings.kind === "paper") {
    const { seed, faults } = settings;
    return openPaperBroker({ db, markets, seed, ...(faults && { faults }) });
  }
  return openHttpBroker({ ...settings, ...(onDrift && { onDrift }) });
}

/** For a reader: it creates no schema, and sends nothing. */
export const openBooks = (settings: BrokerSettings, db: Db): Books =>
  settings.kind === "paper" ? openPaperBooks(db) : openHttpBroker(settings);
