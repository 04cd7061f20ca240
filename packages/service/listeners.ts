/** The two listeners of a service: its own port, and that of operators with metrics, health and debugging. */
import { type DocsPageOptions, docsPage, type HttpApp, publicRoute } from "@todoke/http";
import type { CommonSettings } from "./common-settings.ts";
import { serve } from "./listen.ts";
import { buildOpsApp, closedDebug, type OpsOptions, opsPortOf } from "./ops.ts";

export interface ListenerParts {
  readonly app: HttpApp;
  readonly debugRoutes: readonly ((app: HttpApp) => void)[];
  /** The sources of its API reference, if it shows more than its own. */
  readonly docs: DocsPageOptions | undefined;
  readonly ops: OpsOptions & { readonly service: string };
  readonly settings: Pick<CommonSettings, "host" | "opsHost" | "port" | "isDev" | "isDebugOpen" | "apiDocs">;
  readonly stopping: AbortSignal;
}

export interface Listeners {
  readonly url: string;
  readonly opsUrl: string;
  /** Resolves when the last connection of both is closed. */
  readonly closed: Promise<unknown>;
}

export async function startListeners(parts: ListenerParts): Promise<Listeners> {
  const { app, debugRoutes, docs, ops, settings, stopping } = parts;
  const { host, opsHost, port, isDev, isDebugOpen } = settings;
  const debug = (on: HttpApp) => debugRoutes.forEach((routes) => void routes(on));
  if (isDev && isDebugOpen(host)) await servePublicly(app, debug);
  if (settings.apiDocs) await docsPage(app, docs);
  const opsApp = await buildOpsApp({ ...ops, debug: isDebugOpen(opsHost) ? debug : closedDebug(ops.service) });
  const serving = await serve(app, { host, port, stopping });
  const opsServing = await serve(opsApp, { host: opsHost, port: opsPortOf(port), stopping });
  return { url: serving.url, opsUrl: opsServing.url, closed: Promise.all([serving.closed, opsServing.closed]) };
}

/** Serves the routes of the ops listener on the service's own port too, as `todoke dev` does. */
async function servePublicly(app: HttpApp, routes: (app: HttpApp) => void): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook("onRoute", (route) => {
      route.config = { ...route.config, ...publicRoute.config };
    });
    routes(scope.withTypeProvider());
  });
}
