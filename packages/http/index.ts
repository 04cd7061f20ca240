/**
 * The edge of every service: Fastify, with its promises built in.
 *
 * Bodies are read strictly and refused with the name of the field; every answer that is not a success is problem+json;
 * every request has an id; a command with an Idempotency-Key is answered the same to the byte; and a stop answers all
 * that was accepted.
 */
export { type ApiKey, fixedKeys, hashOfKey, holderName, newApiKey, openApiKeys, readApiKeys } from "./api-keys.ts";
export {
  createKey,
  type KeyChoice,
  type ListedKey,
  listKeys,
  type NewKey,
  revokeKeys,
  timeToCome,
} from "./api-keys-store.ts";
export { buildHttpApp, type HttpApp, type HttpAppOptions } from "./app.ts";
export { batchResults, ItemKey, sendBatch } from "./batch.ts";
export {
  type Authenticate,
  bearerAuthentication,
  everybody,
  isLetInAsAdmin,
  mayCall,
  type Principal,
  type Proofs,
  type Role,
  type Rule,
  requires,
  roles,
  type Scope,
  scopes,
  whoAsks,
} from "./callers.ts";
export { type CircuitBreaker, type CircuitBreakerOptions, circuitBreaker } from "./circuit-breaker.ts";
export { type DocsPageOptions, docsPage } from "./docs-page.ts";
export { serveHealth } from "./health.ts";
export { IdempotencyHeaders, idempotencyKey, sendAnswer } from "./idempotency.ts";
export { type ServeOptions, type Serving, serve } from "./listen.ts";
export type { LogOptions } from "./log.ts";
export { metricCatalogue } from "./names.ts";
export { ProblemView } from "./openapi.ts";
export { buildOpsApp, type OpsOptions, opsPortOf } from "./ops.ts";
export { type OutboxRoutesOptions, outboxRoutes } from "./outbox-routes.ts";
export { type CursorForm, cursorOf, NextCursor, PageQuery, page } from "./page.ts";
export { pageHeaders } from "./page-headers.ts";
export { perSecond } from "./per-second.ts";
export { problemOfFailure } from "./problem-handler.ts";
export * as problems from "./problems.ts";
export { prometheusName } from "./prometheus.ts";
export { type Check, Readiness, type ReadinessOptions, type ReadinessReport } from "./readiness.ts";
export { RedriveBody, RedriveView, redriveRequest } from "./redrive.ts";
export { type ServiceDefinition, type ServiceParts, service } from "./service.ts";
export { type Env, readProcessedKeepMs, wholeNumbers } from "./settings.ts";
export { onStopSignals, type StopOptions } from "./stop-signals.ts";
export { parseStrictJson } from "./strict-json.ts";
export {
  newSigningKey,
  openSigner,
  publicPartOf,
  readSigningKey,
  readVerifyingKeys,
  type Signer,
  type SigningKey,
  textOfSigningKey,
  textOfVerifyingKey,
  tokenVerifier,
  type VerifyingKey,
} from "./tokens.ts";
export type { WorkerChoices } from "./worker-settings.ts";
