/** The service's HTTP face. */
import { buildHttpApp, docsPage, type HttpApp, type LogOptions } from "@todoke/http";
import type { Deps } from "./deps.ts";
import { entitlementRoutes } from "./routes/entitlements.ts";

export async function buildApp(deps: Deps, log: LogOptions): Promise<HttpApp> {
  const app = await buildHttpApp({ title: "Todoke entitlement", version: "0.1.0", log });
  entitlementRoutes(app, deps);
  await docsPage(app);
  return app;
}
