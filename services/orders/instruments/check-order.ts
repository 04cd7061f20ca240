/** Checks an order against its instrument before it is accepted. */
import type { Problem } from "@todoke/kernel/problem";
import { compareDecimals, type Decimal, formatDecimal, isMultipleOf, multiplyDecimals } from "../order/decimal.ts";
import type { OrderRequest } from "../order/order-request.ts";
import {
  instrumentNotAllowed,
  limitExceeded,
  priceNotAllowed,
  priceRequired,
  quantityNotAllowed,
  slippageNotLimited,
} from "../problems.ts";
import type { Instrument, Instruments } from "./types.ts";

interface OrderLimits extends Pick<Instruments, "byName"> {
  readonly limitsSlippage: boolean;
}

/** The problem of an order that is not allowed; undefined if it is. */
export function checkOrder(order: OrderRequest, { byName, limitsSlippage }: OrderLimits): Problem | undefined {
  const instrument = byName.get(order.instrument);
  if (!instrument)
    return instrumentNotAllowed(
      `${order.instrument} is not on the list of instruments`,
      at("instrument", "is not on the list"),
    );
  return (
    checkQuantity(order, instrument) ??
    checkPrice(order, instrument) ??
    checkNotional(order, instrument) ??
    (limitsSlippage ? undefined : checkSlippage(order))
  );
}

/** Only for market orders: a limit order is filled at its price or better. */
function checkSlippage({ price, max_slippage_bps }: OrderRequest): Problem | undefined {
  if (price || max_slippage_bps === undefined) return undefined;
  return slippageNotLimited(
    "the broker does not limit the slippage of market orders; set a price instead",
    at("risk_constraints.max_slippage_bps", "is not supported by the broker"),
  );
}

function checkQuantity({ qty }: OrderRequest, { min_qty, step, max_qty }: Instrument): Problem | undefined {
  if (isLess(qty, min_qty))
    return quantityNotAllowed(...fieldError("qty", `must be at least ${formatDecimal(min_qty)}`));
  if (!isMultipleOf(qty, step))
    return quantityNotAllowed(...fieldError("qty", `must be a multiple of ${formatDecimal(step)}`));
  if (isLess(max_qty, qty)) return limitExceeded(...fieldError("qty", `must be at most ${formatDecimal(max_qty)}`));
  return undefined;
}

function checkPrice({ price }: OrderRequest, { tick }: Instrument): Problem | undefined {
  if (!price || !tick || isMultipleOf(price, tick)) return undefined;
  return priceNotAllowed(...fieldError("price", `must be a multiple of ${formatDecimal(tick)}`));
}

/** Checks qty times price against the limits of the instrument and of the order itself. */
function checkNotional(order: OrderRequest, { max_notional, reference_price }: Instrument): Problem | undefined {
  const price = order.price ?? reference_price;
  if (!price)
    return priceRequired(
      ...fieldError("price", "is required: the instrument has no reference price to check limits by"),
    );
  const notional = multiplyDecimals(order.qty, price);
  const is = `qty times price is ${formatDecimal(notional)}`;
  if (isLess(max_notional, notional))
    return limitExceeded(`${is}; the limit is ${formatDecimal(max_notional)}`, at("qty", "is too large at this price"));
  if (order.max_notional && isLess(order.max_notional, notional))
    return limitExceeded(
      `${is}, more than risk_constraints.max_notional`,
      at("risk_constraints.max_notional", `is less than ${formatDecimal(notional)}`),
    );
  return undefined;
}

const isLess = (a: Decimal, b: Decimal) => compareDecimals(a, b) < 0;

const at = (field: string, detail: string) => ({ fields: [{ field: `body.${field}`, detail }] });

const fieldError = (field: string, detail: string) => [`${field} ${detail}`, at(field, detail)] as const;
