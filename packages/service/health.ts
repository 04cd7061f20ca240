/** /livez: the process responds. /readyz: it can do its work; otherwise 503 with the result of each check. Never cached. */
import { everybody, type HttpApp } from "@todoke/http";
import type { Readiness } from "./readiness.ts";

export function serveHealth(app: HttpApp, readiness: Readiness): void {
  app.get("/livez", { ...everybody, schema: { hide: true } }, async () => ({ status: "live" }));
  app.get("/readyz", { ...everybody, schema: { hide: true } }, async (_request, reply) => {
    const report = await readiness.report();
    return reply.code(report.status === "ready" ? 200 : 503).send(report);
  });
}
