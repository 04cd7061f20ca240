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
export type { Env } from "./env.ts";
export { hostNameIn, ourHosts, readAllowedHosts } from "./hosts.ts";
export { IdempotencyHeaders, idempotencyKey, sendAnswer } from "./idempotency.ts";
export { type LogOptions, logError } from "./log.ts";
export { httpMigrations } from "./migrations/index.ts";
export { metricCatalogue } from "./names.ts";
export { ProblemView } from "./openapi.ts";
export { type CursorForm, cursorOf, NextCursor, PageQuery, page } from "./page.ts";
export { pageHeaders } from "./page-headers.ts";
export { perSecond } from "./per-second.ts";
export { problemOfFailure } from "./problem-handler.ts";
export * as problems from "./problems.ts";
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
