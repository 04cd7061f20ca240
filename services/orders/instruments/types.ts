/** The instruments that can be ordered, and their limits. */
import type { Decimal } from "../order/decimal.ts";

export interface Instrument {
  readonly name: string;
  readonly min_qty: Decimal;
  /** Quantities are multiples of it. */
  readonly step: Decimal;
  readonly max_qty: Decimal;
  /** The limit of quantity times price. */
  readonly max_notional: Decimal;
  /** Prices are multiples of it. */
  readonly tick?: Decimal;
  /** The price of a market order, for max_notional. */
  readonly reference_price?: Decimal;
  /** The limit of the position, long or short, with all open orders filled. */
  readonly max_position?: Decimal;
  /** The limit of the open orders, each quantity times price. */
  readonly max_open_notional?: Decimal;
}

export interface Instruments {
  readonly byName: ReadonlyMap<string, Instrument>;
  /** New orders in one second of the clock, over all processes; undefined: no limit. */
  readonly ordersPerSecond: number | undefined;
}
