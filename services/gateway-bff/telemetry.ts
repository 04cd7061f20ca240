/** The metrics and spans that only this service has; docs/telemetry.md lists the same. */
import { counter, createMeters, histogram, type MetricCatalogue } from "@todoke/kernel/telemetry";
import type { UpstreamName } from "./problems.ts";

export const metricCatalogue = {
  "gateway.login.total": counter("{login}", "Logins by result: ok, suspended, or the code of the refusal", ["result"]),
  "gateway.upstream.duration": histogram(
    "s",
    "Duration of a call to a service, with its retry and its time in the queue",
    ["upstream", "result"],
  ),
  "gateway.upstream.total": counter(
    "{attempt}",
    "Attempts to call a service by result: ok, refused (4xx), timeout, bad_gateway, unavailable (503, or not called)",
    ["upstream", "result"],
  ),
  "gateway.profile.parts": counter("{part}", "Parts of profiles by status: ok, stale, failed, absent", [
    "part",
    "status",
  ]),
  "gateway.rate_limited.total": counter(
    "{request}",
    "Requests that were refused by a rate limit, or uncounted because the limiter failed",
    ["limit", "result"],
  ),
} satisfies MetricCatalogue;

export const spanNames = {
  /** One call to a service, with its retry: child of the request, parent of the service's own span. */
  upstream: "gateway upstream",
} as const;

export type UpstreamOutcome = "ok" | "refused" | "timeout" | "bad_gateway" | "unavailable";

const { count, observeDuration } = createMeters("@todoke/gateway-bff", metricCatalogue);

export function countAttempt(upstream: UpstreamName, result: UpstreamOutcome): void {
  count("gateway.upstream.total", { upstream, result });
}

export function recordCall(upstream: UpstreamName, result: UpstreamOutcome, sinceMs: number): void {
  observeDuration("gateway.upstream.duration", sinceMs, { upstream, result });
}

export function countProfilePart(part: string, status: string): void {
  count("gateway.profile.parts", { part, status });
}

export function countLogin(result: string): void {
  count("gateway.login.total", { result });
}

export function countLimited(limit: string, result: "refused" | "uncounted"): void {
  count("gateway.rate_limited.total", { limit, result });
}
