/** /livez: the process responds. /readyz: it can do its work; otherwise 503 with the result of each check. Never cached. */
import { type HttpApp, publicRoute } from "@todoke/http";
import type { Readiness } from "./readiness.ts";

export function serveHealth(app: HttpApp, readiness: Readiness): void {
  app.get("/livez", { ...publicRoute, schema: { hide: true } }, async () => ({ status: "live" }));
  app.get("/readyz", { ...publicRoute, schema: { hide: true } }, async (_request, reply) => {
    const report = await readiness.report();
    return reply.code(report.status === "ready" ? 200 : 503).send(report);
  });
}
