/** Reads of the `todoke orders` command, which needs the database only. */
export { type OrderStatus, orderStatuses } from "../order/order-status.ts";
export { type OrderStep, selectHistory } from "./history.ts";
export {
  type Listed,
  type OrderRow,
  selectOrder,
  selectOrders,
  selectOrdersNamed,
  selectUnresolved,
} from "./orders.ts";
export { everything, selectTradingState, type TradingMode, type TradingState } from "./trading-state.ts";
