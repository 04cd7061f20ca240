/** The routes that every service has for staff. A gateway forwards to them under /v1/admin/services/<service>. */
import { auditLogRoute } from "./audit-log.ts";
import { batchRoutes } from "./batch-routes.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import type { StaffRouteDeps } from "./deps.ts";
import { keyRoutes } from "./key-routes.ts";
import { lastAuditRoute } from "./last-audit.ts";
import { type overviewReader, overviewRoute } from "./overview.ts";

export { readStaffActs } from "./audit-log.ts";
export { batchesTable, finishedBatches } from "./batch-store.ts";
export { startBatchWorker } from "./batch-worker.ts";
export { type ChangesSource, changesReader, changesRoute, idsMax, type ReadChanges, type Topics } from "./changes.ts";
export { readDeadLetterGroups } from "./dead-letter-groups.ts";
export type { StaffRouteDeps } from "./deps.ts";
export { type Need, type OverviewSource, overviewReader } from "./overview.ts";
export { revokeServiceKey } from "./revoke-service-key.ts";
export { oldSamples } from "./sample-store.ts";
export { startSampler } from "./sampler.ts";

export function staffRoutes(deps: StaffRouteDeps, readOverview: ReturnType<typeof overviewReader>): void {
  deadLetterRoutes(deps);
  batchRoutes(deps);
  auditLogRoute(deps);
  overviewRoute(deps, readOverview);
  keyRoutes(deps);
  lastAuditRoute(deps);
}
