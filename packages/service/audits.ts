/** Audits of a service's own tables, at an interval, by one of its processes. */

import type { HttpApp } from "@todoke/http";
import { type AuditSpec, auditLive, startAudits } from "@todoke/kernel/audit";
import { openDb } from "@todoke/kernel/db";
import type { CommonSettings } from "./common-settings.ts";
import type { Runtime } from "./runtime.ts";

export interface LiveAudits {
  readonly name: string;
  readonly schema: string;
  readonly common: CommonSettings;
  readonly specs: readonly AuditSpec[];
  readonly log: HttpApp["log"];
}

/** A million rows take some seconds. */
const pool = { poolMax: 1, statementTimeoutMs: 60 * 60 * 1_000 };

export function startLiveAudits(runtime: Runtime, { name, schema, common, specs, log }: LiveAudits): void {
  const { auditMs, databaseUrl, retention } = common;
  if (!runtime.hasRole("maintenance") || auditMs === 0) return;
  const audits = startAudits({
    db: runtime.db,
    name,
    intervalMs: auditMs,
    async run() {
      // A pool for the time of the audit, whose statement may take minutes.
      const db = openDb({ ...pool, url: databaseUrl, schema, applicationName: `${name} audit` });
      try {
        return await auditLive(db, specs, { keptMs: retention.publishedMs });
      } finally {
        await db.end();
      }
    },
    onViolations: (findings) => log.error({ findings }, "the audit found violations"),
    onError: runtime.onError,
  });
  runtime.use(audits);
}
