/** All public routes of the service. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { queueRoutes } from "./queues.ts";
import { staffRoutes } from "./staff.ts";
import { ticketRoutes } from "./tickets.ts";

export function matchmakingRoutes(app: HttpApp, deps: Deps): void {
  queueRoutes(app, deps);
  ticketRoutes(app, deps);
  staffRoutes(app, deps);
}
