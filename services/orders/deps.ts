/** The dependencies of the routes. */
import type { Authenticate } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import type { AcceptOrder } from "./commands/accept-order.ts";
import type { CancelAllOrders } from "./commands/cancel-all-orders.ts";
import type { CancelOrder } from "./commands/cancel-order.ts";
import type { resolveOrderAsStaff } from "./commands/resolve-order.ts";
import type { SetTradingState } from "./commands/set-trading-state.ts";
import type { ExposureLimits } from "./instruments/index.ts";

export interface Deps {
  /** For reads. */
  readonly db: Db;
  readonly authenticate: Authenticate;
  readonly acceptOrder: AcceptOrder;
  readonly cancelOrder: CancelOrder;
  readonly cancelAllOrders: CancelAllOrders;
  /** The limits of an instrument, as the API shows them. */
  readonly limitsOf: (instrument: string) => ExposureLimits;
  readonly resolveOrderAsStaff: ReturnType<typeof resolveOrderAsStaff>;
  readonly setTradingState: SetTradingState;
  readonly setTradingStateOfInstrument: SetTradingState;
}
