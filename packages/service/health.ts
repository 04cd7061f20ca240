/**
 * /livez: the process responds. /readyz: it can serve requests; otherwise 503 with the result of each check. It also names what does
 * not work while requests are served (200, "degraded"). Never cached.
 */
import { type HttpApp, publicRoute } from "@todoke/http";
import type { Readiness } from "./readiness.ts";

export function serveHealth(app: HttpApp, readiness: Readiness): void {
  app.get("/livez", { ...publicRoute, schema: { hide: true } }, async () => ({ status: "live" }));
  app.get("/readyz", { ...publicRoute, schema: { hide: true } }, async (_request, reply) => {
    const report = await readiness.report();
    return reply.code(["ready", "degraded"].includes(report.status) ? 200 : 503).send(report);
  });
}
