/** What a person does with orders by the database alone, while the service is up or down: the face of `todoke orders`. */
export { resolveOrder } from "./commands/resolve-order.ts";
export { setTradingState } from "./commands/set-trading-state.ts";
export { InstrumentsFaulty, openInstruments } from "./instruments/index.ts";
export { type OrderStatus, orderStatuses } from "./order.ts";
export { type OrderStep, selectHistory } from "./store/history.ts";
export { selectOrdersNamed } from "./store/named-orders.ts";
export { type Listed, type OrderRow, selectOrder, selectOrders, selectUnresolved } from "./store/orders.ts";
export { everything, selectTradingState, type TradingMode, type TradingState } from "./store/trading-state.ts";
