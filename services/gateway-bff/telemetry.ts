/** What only this service tells of itself. Every name it adds is here; docs/telemetry.md lists the same. */
import { type MetricCatalogue, metersOf } from "@todoke/kernel/telemetry";
import type { Result, UpstreamName } from "./upstreams/verdict.ts";

export const metricCatalogue = {
  "gateway.login.total": {
    kind: "counter",
    unit: "{login}",
    description: "Log-ins by what became of them: ok, or why not",
    attributes: ["result"],
  },
  "gateway.upstream.duration": {
    kind: "histogram",
    unit: "s",
    description: "From a service being asked to its answer being there, a second try and the wait for a place included",
    attributes: ["upstream", "result"],
  },
  "gateway.upstream.total": {
    kind: "counter",
    unit: "{try}",
    description:
      "Tries to ask a service: ok, refused (4xx), timeout, bad_gateway, unavailable (it said so, or was not even asked)",
    attributes: ["upstream", "result"],
  },
  "gateway.profile.parts": {
    kind: "counter",
    unit: "{part}",
    description: "Parts of profiles by what became of them: ok, stale, failed, absent",
    attributes: ["part", "status"],
  },
  "gateway.limited.total": {
    kind: "counter",
    unit: "{request}",
    description:
      "Requests refused because their caller had had enough, or uncounted because the limiter could not be asked",
    attributes: ["limit", "result"],
  },
} as const satisfies MetricCatalogue;

export const spanNames = {
  /** One call of a service, with its second try; child of the request, parent of the service's own. */
  upstream: "gateway upstream",
} as const;

const { count, observeDuration } = metersOf("@todoke/gateway-bff", metricCatalogue);

export function tellTry(upstream: UpstreamName, result: Result): void {
  count("gateway.upstream.total", { upstream, result });
}

export function tellCall(upstream: UpstreamName, result: Result, sinceMs: number): void {
  observeDuration("gateway.upstream.duration", sinceMs, { upstream, result });
}

export function tellPart(part: string, status: string): void {
  count("gateway.profile.parts", { part, status });
}

export function tellLogin(result: string): void {
  count("gateway.login.total", { result });
}

export function tellLimited(limit: string, result: "refused" | "uncounted"): void {
  count("gateway.limited.total", { limit, result });
}
