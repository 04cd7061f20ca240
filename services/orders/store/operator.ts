/** Reads of the `todoke orders` command, which needs the database only. */
export { type OrderStatus, orderStatuses } from "../order/order-status.ts";
export { type OrderStep, selectHistory } from "./history.ts";
export {
  type OrderCursor,
  type OrderRow,
  selectOrder,
  selectOrders,
  selectOrdersByName,
  selectUnresolved,
} from "./orders.ts";
export {
  allInstruments,
  selectTradingState,
  type TradingMode,
  type TradingState,
} from "./trading-state.ts";
