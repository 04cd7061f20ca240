/**
 * Counts logouts of an identity provider by issuer. They all come from one address, and a mass logout sends thousands at
 * once: counted by address, they would be refused, and their sessions would stay.
 */
import { setLimitHeaders, toRateLimitProblem } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { countLimited } from "../telemetry.ts";
import type { LimitOptions } from "./hook.ts";

type Options = Pick<LimitOptions, "limiter" | "limits" | "onError">;

/** For a request whose issuer is authenticated. Throws if the issuer is over its limit. */
export function countByIssuer({ limiter, limits, onError }: Options) {
  return async (request: FastifyRequest, reply: FastifyReply, issuer: string): Promise<void> => {
    if (request.cost) request.cost.isCounted = true;
    const item = { key: `issuer/${issuer}/logout`, units: 1, policy: limits.classes.logout };
    const decision = await limiter.take([item]).catch((cause: unknown) => {
      // Let it pass: the token is genuine, and a session that stays is worse than an uncounted request.
      onError(new Error("counting a logout of the provider failed", { cause }));
      countLimited("logout", "uncounted");
    });
    if (!decision) return;
    setLimitHeaders(reply, decision);
    if (decision.granted) return;
    countLimited("logout", "refused");
    throw toRateLimitProblem(decision);
  };
}
