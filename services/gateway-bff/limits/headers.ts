/**
 * What a caller is told of his limits: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), and in a
 * refusal when to come again.
 *
 * `q` and `w` are what is promised to hold in any window; `r` is what could be had at once, and `t` when nothing of what
 * was used counts any more.
 */
import type { Problem } from "@todoke/kernel/problem";
import type { FastifyReply } from "fastify";
import { rateLimited } from "../problems.ts";
import type { Policy, Taken, Verdict } from "./index.ts";

const secondsOf = (ms: number): number => Math.ceil(ms / 1_000);

const policyText = ({ name, quota, windowMs }: Policy) => `"${name}";q=${quota};w=${secondsOf(windowMs)}`;
const standingText = ({ item, remaining, resetMs }: Verdict) =>
  `"${item.policy.name}";r=${remaining};t=${secondsOf(resetMs)}`;

export function tellLimits(reply: FastifyReply, { verdicts }: Taken): void {
  reply.header("ratelimit-policy", verdicts.map(({ item }) => policyText(item.policy)).join(", "));
  reply.header("ratelimit", verdicts.map(standingText).join(", "));
}

/** For a request that was not granted. */
export function refusalOf({ verdicts }: Taken): Problem {
  // Its caller may go on when the last of those who refused would let him.
  const [longest] = [...verdicts].sort((a, b) => b.waitMs - a.waitMs);
  const retryAfterSeconds = Math.max(1, secondsOf(longest?.waitMs ?? 0));
  const { name = "", quota = 0, windowMs = 0 } = longest?.item.policy ?? {};
  return rateLimited(
    `no more than ${quota} in ${secondsOf(windowMs)} s (${name}); try again in ${retryAfterSeconds} s`,
    { retryAfterSeconds },
  );
}
