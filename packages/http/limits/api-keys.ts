/**
 * Bounds the requests of each API key to this process, so that a client in a tight loop leaves room for the others.
 *
 * It is a bound, not a quota: every process counts for itself, in memory, and nothing is stored (docs/adr/0135). Requests count
 * after authentication and before everything else, with any outcome. A batch counts as one request.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Authenticate, identify, type KeyPrincipal, type Principal } from "../callers.ts";
import { rateLimited } from "../problems.ts";
import type { LimitPolicy } from "./gcra.ts";
import { setLimitHeaders } from "./headers.ts";
import { LocalBuckets } from "./local-buckets.ts";

/** The column `per_second` has the same bound. */
export const maxKeyRate = 1_000_000;

// More keys than that are not in use within two seconds; past it the least recently used one starts again.
const keysMax = 10_000;

const windowMs = 2_000;

/** A steady rate of `perSecond`, and as many at once after a pause: at most three times as many in any two seconds. */
const toPolicy = (perSecond: number): LimitPolicy => ({ name: "key", quota: 3 * perSecond, windowMs });

/** `perSecond` is for keys that have no rate of their own; 0: no bound. */
export function limitKeys(authenticate: Authenticate, { perSecond }: { readonly perSecond: number }): Authenticate {
  const buckets = new LocalBuckets({ keysMax });

  function check(request: FastifyRequest, reply: FastifyReply, principal: KeyPrincipal): void {
    const rate = principal.perSecond ?? perSecond;
    if (rate === 0) return;
    const decision = buckets.take([{ key: principal.keyId ?? principal.name, units: 1, policy: toPolicy(rate) }]);
    if (decision.granted) return;
    identify(request, principal);
    setLimitHeaders(reply, decision);
    throw rateLimited(
      `the API key of ${principal.name} is over its rate of ${rate} requests per second to one process; try again in 1 s`,
      { retryAfterSeconds: 1 }, // A refused request fits after 1 / rate seconds.
    );
  }

  return (request, reply) => {
    const checked = (principal: Principal): Principal => {
      if (principal.kind === "key") check(request, reply, principal);
      return principal;
    };
    const principal = authenticate(request, reply);
    return principal instanceof Promise ? principal.then(checked) : checked(principal);
  };
}
