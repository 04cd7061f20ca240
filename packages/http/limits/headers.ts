/**
 * The headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), and the problem of a refusal.
 *
 * `q` and `w` hold in any window; `r` is what is available at once, `t` the time until the key is unused.
 */
import type { Problem } from "@todoke/kernel/problem";
import type { FastifyReply } from "fastify";
import { rateLimited } from "../problems.ts";
import type { LimitDecision, LimitPolicy, LimitResult } from "./gcra.ts";

const toSeconds = (ms: number): number => Math.ceil(ms / 1_000);

const formatPolicy = ({ name, quota, windowMs }: LimitPolicy) => `"${name}";q=${quota};w=${toSeconds(windowMs)}`;
const formatResult = ({ item, remaining, resetMs }: LimitResult) =>
  `"${item.policy.name}";r=${remaining};t=${toSeconds(resetMs)}`;

export function setLimitHeaders(reply: FastifyReply, { results }: LimitDecision): void {
  reply.header("ratelimit-policy", results.map(({ item }) => formatPolicy(item.policy)).join(", "));
  reply.header("ratelimit", results.map(formatResult).join(", "));
}

/** For a request that was not granted. */
export function toRateLimitProblem({ results }: LimitDecision): Problem {
  // The request fits when the last of the refusing limits lets it pass.
  const [longest] = [...results].sort((a, b) => b.waitMs - a.waitMs);
  const retryAfterSeconds = Math.max(1, toSeconds(longest?.waitMs ?? 0));
  const { name = "", quota = 0, windowMs = 0 } = longest?.item.policy ?? {};
  return rateLimited(
    `at most ${quota} requests in ${toSeconds(windowMs)} s (${name}); try again in ${retryAfterSeconds} s`,
    { retryAfterSeconds },
  );
}
