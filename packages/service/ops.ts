/**
 * The listener for operators: metrics, health and debugging. It is on loopback and has its own port, so that no gateway can
 * route a player to it.
 */
import { buildHttpApp, type HttpApp, type HttpAppOptions } from "@todoke/http";
import { type Health, serveHealth } from "./health.ts";

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

function keepUnderDebug(app: Pick<HttpApp, "addHook">): void {
  app.addHook("onRoute", ({ url }) => {
    if (!url.startsWith("/debug/"))
      throw new Error(`${url} is not under /debug/: it belongs on the service's own port`);
  });
}
