/**
 * All that the edge of a service refuses before a command sees it. Clients branch on the codes: they never change, and
 * docs/errors.md lists them (checked by a test).
 */
import { problem } from "@todoke/kernel/problem";

export const malformedJson = problem({ code: "malformed-json", status: 400, title: "The body is not JSON" });
export const invalidRequest = problem({ code: "invalid-request", status: 400, title: "The request is not valid" });
export const malformedUrl = problem({ code: "malformed-url", status: 400, title: "The URL cannot be read" });
export const malformedHttp = problem({ code: "malformed-http", status: 400, title: "The request is not HTTP" });
export const badRequest = problem({ code: "bad-request", status: 400, title: "The request cannot be accepted" });
export const idempotencyKeyMissing = problem({
  code: "idempotency-key-missing",
  status: 400,
  title: "The Idempotency-Key header is missing",
});
export const idempotencyKeyInvalid = problem({
  code: "idempotency-key-invalid",
  status: 400,
  title: "The Idempotency-Key header cannot be used",
});
export const unauthenticated = problem({ code: "unauthenticated", status: 401, title: "Who is calling is not known" });
export const forbidden = problem({ code: "forbidden", status: 403, title: "The caller may not do this" });
export const notFound = problem({ code: "not-found", status: 404, title: "Nothing is here" });
export const methodNotAllowed = problem({
  code: "method-not-allowed",
  status: 405,
  title: "The method is not possible here",
});
export const requestTimeout = problem({ code: "request-timeout", status: 408, title: "The request came too slowly" });
export const bodyTooLarge = problem({ code: "body-too-large", status: 413, title: "The body is too large" });
export const unsupportedMediaType = problem({
  code: "unsupported-media-type",
  status: 415,
  title: "The body is not of a type that is read here",
});
export const headersTooLarge = problem({ code: "headers-too-large", status: 431, title: "The headers are too large" });
export const unknownHost = problem({ code: "unknown-host", status: 421, title: "The Host header names another host" });
export const tooManyInFlight = problem({
  code: "too-many-in-flight",
  status: 429,
  title: "Too many requests are in flight",
});
export const internal = problem({ code: "internal", status: 500, title: "Something went wrong here" });
export const outcomeUnknown = problem({
  code: "outcome-unknown",
  status: 503,
  title: "It is not known whether the request took effect",
});
export const unavailable = problem({ code: "unavailable", status: 503, title: "Not available just now" });
