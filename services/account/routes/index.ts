/** All routes of the service. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { actRoutes } from "./acts.ts";
import { adminRoutes } from "./admin.ts";
import { identityRoutes } from "./identities.ts";
import { userRoutes } from "./users.ts";

export function accountRoutes(app: HttpApp, deps: Deps): void {
  identityRoutes(app, deps);
  userRoutes(app, deps);
  adminRoutes(app, deps);
  actRoutes(app, deps);
}
