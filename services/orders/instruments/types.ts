/** What may be ordered, and how much of it at once. */
import type { Decimal } from "../decimal.ts";

export interface Instrument {
  readonly name: string;
  readonly min_qty: Decimal;
  /** Quantities are whole numbers of it. */
  readonly step: Decimal;
  readonly max_qty: Decimal;
  /** The most that quantity times price may be. */
  readonly max_notional: Decimal;
  /** Prices are whole numbers of it. */
  readonly tick?: Decimal;
  /** What an order without a price counts as, for max_notional. */
  readonly reference_price?: Decimal;
}

export interface Instruments {
  readonly byName: ReadonlyMap<string, Instrument>;
  /** New orders in one second of the clock, over all processes; undefined: as many as come. */
  readonly ordersPerSecond: number | undefined;
}
