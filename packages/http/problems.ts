/**
 * All that the edge of a service refuses before a command sees it. Clients branch on the codes: they never change, and
 * docs/errors.md lists them (checked by a test).
 */
import { type Problem, problem } from "@todoke/kernel/problem";

export const malformedJson = problem(400, "malformed-json", "The body is not JSON");
export const invalidRequest = problem(400, "invalid-request", "The request is not valid");
export const malformedUrl = problem(400, "malformed-url", "The URL cannot be read");
export const malformedHttp = problem(400, "malformed-http", "The request is not HTTP");
export const badRequest = problem(400, "bad-request", "The request cannot be accepted");
export const idempotencyKeyMissing = problem(400, "idempotency-key-missing", "The Idempotency-Key header is missing");
export const idempotencyKeyInvalid = problem(
  400,
  "idempotency-key-invalid",
  "The Idempotency-Key header cannot be used",
);
export const unauthenticated = problem(401, "unauthenticated", "Who is calling is not known");
export const forbidden = problem(403, "forbidden", "The caller may not do this");
export const notFound = problem(404, "not-found", "Nothing is here");
export const actNotFound = problem(404, "act-not-found", "There is no such act to undo");
export const actAlreadyUndone = problem(409, "act-already-undone", "The act was undone before");
export const apiKeyConflict = problem(409, "api-key-conflict", "The ID or the hash of the API key is in use");
export const methodNotAllowed = problem(405, "method-not-allowed", "The method is not possible here");
export const requestTimeout = problem(408, "request-timeout", "The request came too slowly");
export const bodyTooLarge = problem(413, "body-too-large", "The body is too large");
export const unsupportedMediaType = problem(
  415,
  "unsupported-media-type",
  "The body is not of a type that is read here",
);
export const headersTooLarge = problem(431, "headers-too-large", "The headers are too large");
export const unknownHost = problem(421, "unknown-host", "The Host header names another host");
export const tooManyInFlight = problem(429, "too-many-in-flight", "Too many requests are in flight");
export const rateLimited = problem(429, "rate-limited", "Too many requests");
export const internal = problem(500, "internal", "Something went wrong here");
export const outcomeUnknown = problem(503, "outcome-unknown", "It is not known whether the request took effect");
export const unavailable = problem(503, "unavailable", "Not available just now");

/** The problem of one field: `invalidField("body.amount", "must be 1 or more")`. */
export const invalidField = (field: string, detail: string): Problem =>
  invalidRequest(`${field} ${detail}`, { fields: [{ field, detail }] });
