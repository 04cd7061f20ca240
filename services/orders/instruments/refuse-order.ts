/** What an order must be like before it is written down, as far as it can be said without asking anybody. */
import type { Problem } from "@todoke/kernel/problem";
import { compareDecimals, type Decimal, isMultipleOf, multiplyDecimals, textOfDecimal } from "../decimal.ts";
import type { OrderRequest } from "../order-request.ts";
import {
  instrumentNotAllowed,
  limitExceeded,
  priceNotAllowed,
  priceRequired,
  quantityNotAllowed,
  slippageNotLimited,
} from "../problems.ts";
import type { Instrument, Instruments } from "./types.ts";

/** What may be ordered, at the broker that it goes to. */
interface Allowed extends Pick<Instruments, "byName"> {
  readonly limitsSlippage: boolean;
}

/** The refusal; undefined where there is none. */
export function refuseOrder(order: OrderRequest, { byName, limitsSlippage }: Allowed): Problem | undefined {
  const instrument = byName.get(order.instrument);
  if (!instrument)
    return instrumentNotAllowed(`${order.instrument} cannot be ordered here`, at("instrument", "is not on the list"));
  return (
    refusedQuantity(order, instrument) ??
    refusedPrice(order, instrument) ??
    refusedNotional(order, instrument) ??
    (limitsSlippage ? undefined : refusedSlippage(order))
  );
}

/** An order with a price is held to it: filled there or better, whatever the broker makes of max_slippage_bps. */
function refusedSlippage({ price, max_slippage_bps }: OrderRequest): Problem | undefined {
  if (price || max_slippage_bps === undefined) return undefined;
  return slippageNotLimited(
    "the broker cannot hold an order at the market's price to max_slippage_bps; order it at a price",
    at("risk_constraints.max_slippage_bps", "cannot be held to by the broker"),
  );
}

function refusedQuantity({ qty }: OrderRequest, { min_qty, step, max_qty }: Instrument): Problem | undefined {
  if (isLess(qty, min_qty)) return quantityNotAllowed(...fault("qty", `must be ${textOfDecimal(min_qty)} at least`));
  if (!isMultipleOf(qty, step))
    return quantityNotAllowed(...fault("qty", `must be a whole number of steps of ${textOfDecimal(step)}`));
  if (isLess(max_qty, qty)) return limitExceeded(...fault("qty", `must be ${textOfDecimal(max_qty)} at the most`));
  return undefined;
}

function refusedPrice({ price }: OrderRequest, { tick }: Instrument): Problem | undefined {
  if (!price || !tick || isMultipleOf(price, tick)) return undefined;
  return priceNotAllowed(...fault("price", `must be a whole number of ticks of ${textOfDecimal(tick)}`));
}

/** By the instrument's limit and by the caller's own. */
function refusedNotional(order: OrderRequest, { max_notional, reference_price }: Instrument): Problem | undefined {
  const price = order.price ?? reference_price;
  if (!price)
    return priceRequired(
      ...fault("price", "must be given: without one nobody can say whether the order is within its limits"),
    );
  const notional = multiplyDecimals(order.qty, price);
  const is = `qty times price is ${textOfDecimal(notional)}`;
  if (isLess(max_notional, notional))
    return limitExceeded(`${is}; ${textOfDecimal(max_notional)} is the most`, at("qty", "is too much at this price"));
  if (order.max_notional && isLess(order.max_notional, notional))
    return limitExceeded(
      `${is}, more than the order's own risk_constraints allow`,
      at("risk_constraints.max_notional", `is less than ${textOfDecimal(notional)}`),
    );
  return undefined;
}

const isLess = (a: Decimal, b: Decimal) => compareDecimals(a, b) < 0;

const at = (field: string, detail: string) => ({ fields: [{ field: `body.${field}`, detail }] });

const fault = (field: string, detail: string) => [`${field} ${detail}`, at(field, detail)] as const;
