/** The routes of the service. */
import type { HttpApp } from "@todoke/http";
import type { Deps } from "../deps.ts";
import { adminRoutes } from "./admin.ts";
import { identityRoutes } from "./identities.ts";
import { userActionRoutes } from "./user-actions.ts";
import { userRoutes } from "./users.ts";

export function accountRoutes(app: HttpApp, deps: Deps): void {
  identityRoutes(app, deps);
  userRoutes(app, deps);
  adminRoutes(app, deps);
  userActionRoutes(app, deps);
}
