/**
 * The runtime of a service: its settings and roles, how it starts and stops, its health, its listeners, and the events that
 * it emits and consumes.
 */
export type { Env } from "@todoke/http";
export { serve } from "./listen.ts";
export { type OutboxRoutesOptions, outboxRoutes } from "./outbox-routes.ts";
export { prometheusName } from "./prometheus.ts";
export type { Check } from "./readiness.ts";
export { RedriveBody, RedriveView, redriveRequest } from "./redrive.ts";
export { type ServiceDefinition, type ServiceParts, service } from "./service.ts";
export { readProcessedKeepMs, wholeNumbers } from "./settings.ts";
export { onStopSignals, type StopOptions } from "./stop-signals.ts";
export type { WorkerChoices } from "./worker-settings.ts";
