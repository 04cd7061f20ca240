/**
 * What a broker is to us: a port, with two adapters behind it that are held to one conformance suite.
 *
 * The port's hard part is honesty. A send that got no answer is "unknown", never a failure; "not-taken" is said only with
 * proof; and "never" is said only when no request of ours that is still under way can be taken any more. That rests on
 * the timestamp which every request carries: a broker does not take an order later than its window (30 s) after it, by
 * its own clock. So a request that a frozen process, or a slow network, brings later is refused, and a broker that has
 * not got an order when the window is over will never have it from us.
 */
import type { Db } from "@todoke/kernel/db";
import type { Fault } from "./faults.ts";
import { openHttpBroker } from "./http/index.ts";
import { openPaperBroker } from "./paper/index.ts";

export interface BrokerOrder {
  /** The same at every try, over processes and deploys: what the broker knows the order by. */
  readonly clientOrderId: string;
  readonly instrument: string;
  readonly side: "BUY" | "SELL";
  /** Decimals are text: they are passed on exactly as they were ordered. */
  readonly qty: string;
  /** Null: at the market's price. */
  readonly price: string | null;
  readonly timeInForce: "IOC" | "FOK" | "GTC";
  /**
   * Of an order at the market's price: by how many basis points the price that it is filled at may be worse than the middle
   * of the market when it is taken; null: by any. An order with a price is filled at that price or better.
   */
  readonly maxSlippageBps: number | null;
}

/** What a broker has made of an order that it has taken. */
export interface BrokerResult {
  readonly clientOrderId: string;
  readonly brokerOrderId: string;
  readonly instrument: string;
  readonly side: string;
  readonly qty: string;
  readonly filledQty: string;
  /** At which it was filled; null where nothing was. */
  readonly price: string | null;
  readonly status: "filled" | "open" | "expired" | "cancelled";
  /** RFC 3339, by the broker's clock. */
  readonly takenAt: string;
}

/** `evidence` is the broker's answer as it came. */
export type Taken = { readonly kind: "taken"; readonly result: BrokerResult; readonly evidence: string };
export type Rejected = { readonly kind: "rejected"; readonly why: string; readonly evidence: string };

export type SendOutcome =
  | Taken
  | Rejected
  /** It has this order from before: ask by key what became of it. */
  | { readonly kind: "already"; readonly why: string }
  /** With proof only. INTERNAL_ERROR: our own fault, as a timestamp that is off. */
  | {
      readonly kind: "not-taken";
      readonly code: "BROKER_DOWN" | "BROKER_RATE_LIMITED" | "INTERNAL_ERROR";
      readonly why: string;
      readonly retryAfterMs?: number;
    }
  /** No answer (BROKER_TIMEOUT), one that does not say (BROKER_DOWN), or one that we cannot read (INTERNAL_ERROR). */
  | {
      readonly kind: "unknown";
      readonly code: "BROKER_TIMEOUT" | "BROKER_DOWN" | "INTERNAL_ERROR";
      readonly why: string;
    };

type FindOutcome =
  | Taken
  | Rejected
  /** It has not taken the order, and no request of ours that is under way can make it. */
  | { readonly kind: "never" }
  /** It has not got it, but may still get it. */
  | { readonly kind: "not-yet" }
  | { readonly kind: "unknown"; readonly why: string };

interface CancelOutcome {
  readonly kind: "cancelled" | "too-late" | "not-found" | "unknown";
  readonly why: string;
}

export interface Broker extends AsyncDisposable {
  readonly name: string;
  /** It takes an order once per client order id, however often it is sent. */
  readonly dedupes: boolean;
  /** For so long after its timestamp a request may still be taken, with a margin; 0 where the broker promises no end. */
  readonly windowMs: number;
  /** The broker's time, as far as we know it: what the next request is to be stamped with. */
  clock(): Date;
  /**
   * Never rejects. `stampedAt` goes with the request and is kept before: after the window the broker refuses it. An order that
   * the broker cannot hold to its `maxSlippageBps` is rejected unsent.
   */
  send(order: BrokerOrder, options: { readonly stampedAt: Date; readonly signal: AbortSignal }): Promise<SendOutcome>;
  /** What it knows of the order, the last request for which was stamped `lastSentAt`. Never rejects. */
  find(
    clientOrderId: string,
    options: { readonly lastSentAt: Date; readonly signal: AbortSignal },
  ): Promise<FindOutcome>;
  /** Never rejects. */
  cancel(clientOrderId: string, signal: AbortSignal): Promise<CancelOutcome>;
  /** All that it has taken since then, for reconciliation. Throws when it cannot be told whole. */
  list(since: Date, signal: AbortSignal): AsyncIterable<BrokerResult>;
}

/** The names of all adapters: what an order says that it goes to. */
export const adapterNames: readonly BrokerSettings["kind"][] = ["paper", "http"];

export type BrokerSettings =
  | {
      readonly kind: "paper";
      /** What goes wrong, and how often: for rehearsals. */
      readonly faults?: ReadonlyMap<Fault, number>;
    }
  | {
      readonly kind: "http";
      readonly url: URL;
      readonly secret: string;
      readonly dedupes: boolean;
      /** For so long after its timestamp the broker may take an order; 0 where it promises nothing. */
      readonly windowMs: number;
      /** It fills no order at a price that is further away than the order's max_slippage_bps. */
      readonly limitsSlippage: boolean;
    };

/** Whether the broker holds orders at the market's price to their max_slippage_bps. */
export const limitsSlippage = (settings: BrokerSettings): boolean =>
  settings.kind === "paper" || settings.limitsSlippage;

export interface BrokerParts {
  /** The service's own pool; the paper broker makes its schema beside the service's. */
  readonly db: Db;
  readonly onDrift?: (driftMs: number) => void;
}

/** The broker that the settings name. */
export async function openBroker(settings: BrokerSettings, { db, onDrift }: BrokerParts): Promise<Broker> {
  if (settings.kind === "paper") return openPaperBroker({ db, ...(settings.faults && { faults: settings.faults }) });
  return openHttpBroker({ ...settings, ...(onDrift && { onDrift }) });
}
