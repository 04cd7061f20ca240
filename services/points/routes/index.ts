/** Every route of points. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { balanceRoutes } from "./balances.ts";
import { changeRoutes } from "./changes.ts";
import { holdRoutes } from "./holds.ts";
import { reservationRoutes } from "./reservations.ts";
import { scheduleUserRoutes } from "./schedule-users.ts";
import { scheduleRoutes } from "./schedules.ts";
import { staffRoutes } from "./staff.ts";
import { statementRoutes } from "./statement.ts";

export function pointsRoutes(app: HttpApp, deps: Deps): void {
  changeRoutes(app, deps);
  holdRoutes(app, deps);
  reservationRoutes(app, deps);
  balanceRoutes(app, deps);
  statementRoutes(app, deps);
  scheduleRoutes(app, deps);
  scheduleUserRoutes(app, deps);
  staffRoutes(app, deps);
}
