/** All routes of the service. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { cancelAllRoutes } from "./cancel-all.ts";
import { doOrderRoutes } from "./do-order.ts";
import { ordersRoutes } from "./orders.ts";
import { positionsRoutes } from "./positions.ts";
import { staffRoutes } from "./staff.ts";
import { tradingStateRoutes } from "./trading-state.ts";

export function orderRoutes(app: HttpApp, deps: Deps): void {
  doOrderRoutes(app, deps);
  ordersRoutes(app, deps);
  cancelAllRoutes(app, deps);
  positionsRoutes(app, deps);
  tradingStateRoutes(app, deps);
  staffRoutes(app, deps);
}
