/**
 * The runtime of a service: its settings and roles, how it starts and stops, its health, its listeners, and the events that
 * it emits and consumes.
 */
export type { Env } from "@todoke/http";
export {
  allSubjects,
  type BusAddress,
  type BusRequest,
  busVariables,
  findBus,
  type ServiceSubjects,
  type Subject,
} from "./buses.ts";
export { commandMetrics } from "./command-metrics.ts";
export { findDatabaseUrl } from "./common-settings.ts";
export type { ServiceDependencies } from "./definition.ts";
export { serve } from "./listen.ts";
export { mergeMetrics, onlyTotals } from "./merge-metrics.ts";
export { deadLetterNotFound } from "./problems.ts";
export type { GroupAnswer, GroupAnswers, GroupQuestion, ProcessGroup } from "./process-group.ts";
export { prometheusName } from "./prometheus.ts";
export type { Check } from "./readiness.ts";
export { redriveDeadLetter } from "./redrive-dead-letter.ts";
export { RedriveBody, RedrivenView, RedrivesView, redriveRequest } from "./redrive-views.ts";
export type { ServeStaff, StaffReads } from "./serve-staff.ts";
export { checkServerUrl, listSettingsBeside, readServerUrl } from "./server-urls.ts";
export { service } from "./service.ts";
export { integerReader, readBoolean, readHosts, readSecrets } from "./settings.ts";
export { idsMax as changeIdsMax, type Need, readDeadLetterGroups, readStaffActs, type Topics } from "./staff/index.ts";
export { KeyParams, KeysQuery, keyFields, newKeyFields, readKeys } from "./staff/key-routes.ts";
export { Need as NeedView, ServiceOverview as ServiceOverviewView } from "./staff/overview.ts";
export {
  BatchBody,
  FilterQuery as DeadLetterFilterQuery,
  GroupsView as DeadLetterGroupsView,
  ListQuery as DeadLetterListQuery,
  RowsBody as DeadLetterActBody,
  StaffActView,
} from "./staff/views.ts";
export { onStopSignals } from "./stop-signals.ts";
export { type DeadLetterDeps, type TableGauges, tableGauges } from "./tables.ts";
export type { WorkerOverrides } from "./worker-settings.ts";
