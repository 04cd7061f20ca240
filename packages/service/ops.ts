/**
 * The listener for those who run a service: metrics, health and debugging, on loopback and a port of its own, so that
 * no gateway can ever pass a player through to it.
 */
import { buildHttpApp, type HttpApp, type HttpAppOptions } from "@todoke/http";
import { serveHealth } from "./health.ts";
import type { Readiness } from "./readiness.ts";

export interface OpsOptions extends HttpAppOptions {
  readonly readiness: Readiness;
  /** The text of /metrics, in the Prometheus exposition format. */
  readonly metrics: () => string | Promise<string>;
  /** Registers routes under /debug/. */
  readonly debug?: (app: HttpApp) => void | Promise<void>;
}

/** Where the ops listener of a service is found: 8082 has its own at 9082. */
export const opsPortOf = (port: number): number => (port === 0 ? 0 : port + 1_000);

/** Probes, scrapes and operators: few. */
const connectionsMax = 256;

export async function buildOpsApp(options: OpsOptions): Promise<HttpApp> {
  // Probes and scrapes are not what the service is there for.
  const app = await buildHttpApp({ ...options, bounds: { connectionsMax }, telemetry: false });
  serveHealth(app, options.readiness);
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
