/**
 * The edge of every service, on Fastify: requests, responses, schemas, limits, problem+json, OpenAPI and authentication.
 *
 * Bodies are read strictly and rejected by the name of the field; every response that is not a success is problem+json; every
 * request has an id; and a command with an Idempotency-Key gets the same response, byte for byte, each time.
 */
export { RequestTime } from "@todoke/contracts/api";
export { type ApiKey, fixedKeys, hashApiKey, holderName, newApiKey, openApiKeys, readApiKeys } from "./api-keys.ts";
export {
  createKey,
  futureTime,
  type KeySelection,
  type ListedKey,
  listKeys,
  type NewKey,
  revokeKeys,
} from "./api-keys-store.ts";
export { buildHttpApp, type HttpApp, type HttpAppOptions } from "./app.ts";
export { batchResults, ItemKey, sendBatch } from "./batch.ts";
export { BoundedMap } from "./bounded-map.ts";
export {
  type AccessRule,
  type Authenticate,
  bearerAuthentication,
  type CredentialVerifiers,
  callerFields,
  guarded,
  hasStaffRole,
  isAllowed,
  isAllowedAsStaff,
  type Principal,
  publicRoute,
  type Role,
  requires,
  roles,
  type Scope,
  type StaffRole,
  scopes,
  staffRoles,
} from "./callers.ts";
export { type CircuitBreaker, circuitBreaker } from "./circuit-breaker.ts";
export { withDescription } from "./components.ts";
export { type DocsPageOptions, docsPage } from "./docs-page.ts";
export { type Env, type RecordedSetting, readList, readSetting, recordSettings } from "./env.ts";
export { hostNameIn, ourHosts, readAllowedHosts } from "./hosts.ts";
export { IdempotencyHeaders, idempotencyKey, OptionalIdempotencyHeaders, sendResponse } from "./idempotency.ts";
export { limitKeys, maxKeyRate } from "./limits/api-keys.ts";
export {
  burstSize,
  decide,
  type LimitDecision,
  type LimitItem,
  type LimitPolicy,
  type LimitResult,
  toPace,
} from "./limits/gcra.ts";
export { setLimitHeaders, toRateLimitProblem } from "./limits/headers.ts";
export { LocalBuckets } from "./limits/local-buckets.ts";
export { type LogOptions, logError, openOutput } from "./log.ts";
export { httpMigrations } from "./migrations/index.ts";
export { metricCatalogue } from "./names.ts";
export { ProblemView } from "./openapi.ts";
export { NextCursor, PageQuery, page, parseCursor } from "./page.ts";
export { pageHeaders } from "./page-headers.ts";
export { perSecond } from "./per-second.ts";
export * as problems from "./problems.ts";
export { type SharedResult, shareReads, UserIds } from "./shared-reads.ts";
export {
  type ActPage,
  type ListedAct,
  recordStaffAct,
  type StaffAct,
  type StaffActor,
  selectStaffActs,
  staffActor,
} from "./staff-acts.ts";
export { StaticText } from "./static-text.ts";
export {
  formatSigningKey,
  formatVerifyingKey,
  newSigningKey,
  openSigner,
  readSigningKey,
  readVerifyingKeys,
  type Signer,
  type SigningKey,
  tokenVerifier,
  toVerifyingKey,
  type VerifyingKey,
} from "./tokens.ts";
