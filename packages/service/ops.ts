/**
 * The listener for operators: metrics, health and debugging. It has its own port, so that no gateway can route a player to it,
 * and is on loopback unless an operator lets other machines, such as Prometheus, reach it. It authenticates nobody, so /debug
 * is then closed (docs/adr/0073).
 */
import { buildHttpApp, type HttpApp, type HttpAppOptions } from "@todoke/http";
import { type Health, serveHealth } from "./health.ts";
import { debugClosed } from "./problems.ts";
import { envName } from "./settings.ts";

export interface OpsOptions extends HttpAppOptions {
  readonly health: Health;
  /** The text of /metrics, in the Prometheus exposition format. */
  readonly metrics: () => string | Promise<string>;
  /** Registers routes under /debug/. */
  readonly debug?: (app: HttpApp) => void | Promise<void>;
}

/** The port of the ops listener: 9082 for a service on 8082. */
export const opsPortOf = (port: number): number => (port === 0 ? 0 : port + 1_000);

/** Few clients: probes, scrapes and operators. */
const connectionsMax = 256;

export async function buildOpsApp(options: OpsOptions): Promise<HttpApp> {
  // Probes and scrapes are not measured as requests of the service.
  const app = await buildHttpApp({ ...options, bounds: { connectionsMax }, telemetry: false });
  serveHealth(app, options.health);
  app.get("/metrics", { schema: { hide: true } }, async (_request, reply) => {
    return reply.type("text/plain; version=0.0.4; charset=utf-8").send(await options.metrics());
  });
  const { debug } = options;
  if (debug) {
    await app.register(async (scope) => {
      const own: HttpApp = scope.withTypeProvider();
      keepUnderDebug(own);
      await debug(own);
    });
  }
  return app;
}

/** Routes in place of the debug routes: 403 that says how to open them. */
export const closedDebug =
  (service: string): NonNullable<OpsOptions["debug"]> =>
  (app) => {
    app.all("/debug/*", { schema: { hide: true } }, () => {
      const detail = `Other machines can reach this listener, so /debug is closed. ${envName(service, "OPS_DEBUG")}=true opens it to all of them.`;
      throw debugClosed(detail);
    });
  };

function keepUnderDebug(app: Pick<HttpApp, "addHook">): void {
  app.addHook("onRoute", ({ url }) => {
    if (!url.startsWith("/debug/"))
      throw new Error(`${url} is not under /debug/: it belongs on the service's own port`);
  });
}
