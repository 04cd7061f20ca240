/** Checks orders against the limits of their instrument on position and open notional, in the order in which they came. */
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  formatDecimal,
  multiplyDecimals,
  parseAnyDecimal,
} from "../order/decimal.ts";
import type { Instrument } from "./types.ts";

/** Of one instrument. */
export interface Exposure {
  /** Bought minus sold. */
  readonly position: Decimal;
  /** The quantities that open orders may still buy and sell. */
  readonly openBuy: Decimal;
  readonly openSell: Decimal;
  readonly openNotional: Decimal;
}

const zero: Decimal = { digits: 0n, scale: 0 };
const toDecimal = (text: string): Decimal => parseAnyDecimal(text) ?? zero;

interface ExposureTexts {
  readonly position: string;
  readonly open_buy_qty: string;
  readonly open_sell_qty: string;
  readonly open_notional: string;
}

/** An instrument without orders has none. */
export const toExposure = (texts: ExposureTexts | undefined): Exposure => ({
  position: toDecimal(texts?.position ?? "0"),
  openBuy: toDecimal(texts?.open_buy_qty ?? "0"),
  openSell: toDecimal(texts?.open_sell_qty ?? "0"),
  openNotional: toDecimal(texts?.open_notional ?? "0"),
});

export interface ExposedOrder {
  readonly side: string;
  readonly qty: string;
  /** The price at which it counts. */
  readonly exposure_price: string | null;
}

export const hasExposureLimit = (instrument: Instrument | undefined): instrument is Instrument =>
  instrument?.max_position !== undefined || instrument?.max_open_notional !== undefined;

/** The exposure with the order, or the limit that it would exceed. */
export function addOrder(exposure: Exposure, order: ExposedOrder, instrument: Instrument): Exposure | string {
  const qty = toDecimal(order.qty);
  const isBuy = order.side === "BUY";
  const after: Exposure = {
    position: exposure.position,
    openBuy: isBuy ? addDecimals(exposure.openBuy, qty) : exposure.openBuy,
    openSell: isBuy ? exposure.openSell : addDecimals(exposure.openSell, qty),
    openNotional: addDecimals(exposure.openNotional, multiplyDecimals(qty, toDecimal(order.exposure_price ?? "0"))),
  };
  return exceededLimit(after, isBuy, instrument) ?? after;
}

/** The worst case counts: every open order on the order's side is filled, and none on the other side. */
function exceededLimit(after: Exposure, isBuy: boolean, instrument: Instrument): string | undefined {
  const { max_position, max_open_notional } = instrument;
  const position = isBuy
    ? addDecimals(after.position, after.openBuy)
    : addDecimals(negate(after.position), after.openSell);
  if (max_position && compareDecimals(max_position, position) < 0)
    return `with all open orders filled, the position would be ${formatDecimal(isBuy ? position : negate(position))}; max_position is ${formatDecimal(max_position)}`;
  if (max_open_notional && compareDecimals(max_open_notional, after.openNotional) < 0)
    return `open orders would be worth ${formatDecimal(after.openNotional)}; max_open_notional is ${formatDecimal(max_open_notional)}`;
  return undefined;
}

const negate = ({ digits, scale }: Decimal): Decimal => ({ digits: -digits, scale });
