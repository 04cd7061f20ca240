/**
 * /livez: every process of the command responds. /readyz: they can serve requests; otherwise 503 with the result of each check. It
 * also names what does not work while requests are served (200, "degraded"). Never cached.
 */
import { type HttpApp, publicRoute } from "@todoke/http";
import type { ReadinessReport } from "./readiness.ts";

export interface Health {
  report(): Promise<ReadinessReport>;
  /** The processes of the command that do not respond. */
  silentProcesses?(): Promise<readonly number[]>;
}

export function serveHealth(app: HttpApp, health: Health): void {
  app.get("/livez", { ...publicRoute, schema: { hide: true } }, async (_request, reply) => {
    const silent = (await health.silentProcesses?.()) ?? [];
    return silent.length === 0 ? { status: "live" } : reply.code(503).send({ status: "not-live", processes: silent });
  });
  app.get("/readyz", { ...publicRoute, schema: { hide: true } }, async (_request, reply) => {
    const report = await health.report();
    return reply.code(["ready", "degraded"].includes(report.status) ? 200 : 503).send(report);
  });
}
