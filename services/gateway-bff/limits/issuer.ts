/**
 * Counts what an identity provider sends by who has signed it. All log-outs of a provider come from one address, and a mass
 * log-out brings thousands of them at once: counted by address, they would be refused and their sessions would live on.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { tellLimited } from "../telemetry.ts";
import { refusalOf, tellLimits } from "./headers.ts";
import type { LimitOptions } from "./hook.ts";

type Options = Pick<LimitOptions, "limiter" | "limits" | "onError">;

/** For a request whose issuer was proven. Throws when the issuer has had enough. */
export function countByIssuer({ limiter, limits, onError }: Options) {
  return async (request: FastifyRequest, reply: FastifyReply, issuer: string): Promise<void> => {
    if (request.cost) request.cost.isTaken = true;
    const item = { key: `issuer/${issuer}/logout`, units: 1, policy: limits.classes.logout };
    const taken = await limiter.take([item]).catch((cause: unknown) => {
      // It is genuine, and a session that lives on is worse than a request that is not counted.
      onError(new Error("counting a log-out of the provider failed", { cause }));
      tellLimited("logout", "uncounted");
    });
    if (!taken) return;
    tellLimits(reply, taken);
    if (taken.granted) return;
    tellLimited("logout", "refused");
    throw refusalOf(taken);
  };
}
