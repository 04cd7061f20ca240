/** The rules of one service, on its own database. */
import { type Audit, auditLive } from "@todoke/kernel/audit";
import { withDatabase } from "../service-database.ts";
import type { Env, ServiceEntry } from "../services.ts";

// A million rows take some seconds. This is enough for a hundred million.
export const statementTimeoutMs = 60 * 60 * 1_000;

export async function auditService(entry: ServiceEntry, env: Env): Promise<Audit> {
  const { audits } = await entry.load();
  if (!audits) return { checked: {}, rules: [], findings: [] };
  const options = { entry, env, purpose: "todoke audit", statementTimeoutMs };
  return withDatabase(options, ({ db }) => auditLive(db, audits.specs, { keptMs: audits.keptMs(env) }));
}
