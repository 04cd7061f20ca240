/**
 * Counts every request, and refuses it with 429 if its caller is over the limit: per user if a user is logged in, else
 * per address, and per address over all users.
 *
 * The class of a request is a property of its route, so that no spelling of a path changes it. A request without a route
 * counts as a read, and requests that are refused for another reason (401, 403, 404) count too. While the limiter is
 * unavailable, logins and writes are refused with 503, and reads pass as far as this process alone may grant them.
 *
 * A read is counted while it runs, and refused before its response is sent: counting adds nothing to its time. A request that
 * this process knows to be over the limit is rejected at once, so a flood causes no work. Everything else is counted first.
 */
import {
  burstSize,
  type HttpApp,
  type LimitDecision,
  type LimitItem,
  perSecond,
  problems,
  setLimitHeaders,
  toRateLimitProblem,
} from "@todoke/http";
import type { Problem } from "@todoke/kernel/problem";
import { withTimeout } from "@todoke/kernel/worker";
import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import type { LimitClass, Limits } from "../config.ts";
import { isSafe } from "../guard/csrf.ts";
import { countLimited } from "../telemetry.ts";
import { clientAddress } from "./address.ts";
import { FloodingUsers } from "./flooding-users.ts";
import { InFlight } from "./in-flight.ts";
import type { LocalLimiter } from "./local-limiter.ts";

export interface LimitOptions {
  readonly limiter: LocalLimiter;
  readonly limits: Limits;
  /** Called for requests that were refused or could not be counted; counts metrics by default. */
  readonly onLimited?: (limit: LimitClass, result: "refused" | "uncounted") => void;
  readonly onError: (error: unknown) => void;
  /** A limiter that takes longer counts as unavailable. */
  readonly limiterTimeoutMs?: number;
}

/** The limit and the units of a request, known from its headers alone. */
interface Cost {
  readonly limit: LimitClass;
  readonly units: number;
  /** The limit over all requests of its address. */
  readonly address: LimitItem;
  /** Whether it has been counted, or is being counted. */
  isCounted: boolean;
  /** The count of a read that runs. */
  counting?: Promise<void>;
  /** Removes it from the requests in flight. */
  leave: () => void;
}

export function limitRequests(app: HttpApp, options: LimitOptions): void {
  const { limiter, limits, onLimited = countLimited, onError, limiterTimeoutMs = 1_000 } = options;
  const inFlight = new InFlight(limits.inFlightMax);
  const floodingUsers = new FloodingUsers();
  // An unavailable limiter fails every request alike: log one line per second, with their number.
  const logUncounted = perSecond<unknown>({
    max: 1,
    write: (cause, count) => onError(new Error(`counting failed for ${count} requests`, { cause })),
  });
  app.decorateRequest("cost", undefined);
  app.addHook("onRoute", (route) => rejectImpossible(route, limits));

  /** Throws if the request is refused. */
  async function count(request: FastifyRequest, reply: FastifyReply, cost: Cost): Promise<void> {
    cost.isCounted = true;
    const items = toItems(request.session?.userId, cost, limits);
    const decision = await withTimeout(limiterTimeoutMs, limiter.take(items)).catch((cause) => {
      logUncounted(cause);
      onLimited(cost.limit, "uncounted");
      if (cost.limit !== "login" && isSafe(request.method)) return undefined;
      throw problems.unavailable("the rate limiter is unavailable; try again", { retryAfterSeconds: 1 });
    });
    if (decision && !decision.granted && request.session) floodingUsers.add(request, request.session.userId);
    if (decision) enforce(decision, cost, reply);
    // A stream stays open for hours, and many players may share an address.
    if (request.routeOptions.config?.longLived) cost.leave();
  }

  /** Throws if the address has too many requests in flight. */
  function enter({ raw }: FastifyReply, cost: Cost): void {
    const leave = inFlight.begin(cost.address.key);
    if (!leave) {
      cost.isCounted = true;
      onLimited(cost.limit, "refused");
      throw problems.tooManyInFlight(`at most ${inFlight.max} requests of one address at a time`, {
        retryAfterSeconds: 1,
      });
    }
    cost.leave = leave;
    raw.once("close", leave);
  }

  function enforce(decision: LimitDecision, { limit }: Cost, reply: FastifyReply): void {
    setLimitHeaders(reply, decision);
    if (decision.granted) return;
    onLimited(limit, "refused");
    throw toRateLimitProblem(decision);
  }

  // A caller over the limit is refused here: no session is looked up, no body is read.
  app.addHook("onRequest", (request, reply, done) => {
    const cost = toCost(request, limits);
    request.cost = cost;
    const userId = floodingUsers.find(request);
    const items = userId === undefined ? [cost.address] : toItems(userId, cost, limits);
    const refusal = cost.isCounted || isCountedByRoute(request) ? undefined : limiter.knownRefusal(items);
    if (refusal) {
      cost.isCounted = true;
      enforce(refusal, cost, reply);
    }
    if (!cost.isCounted && !isCountedByRoute(request)) enter(reply, cost);
    done();
  });

  // After authentication and before the body is read, so that all limits of a request are counted in one step.
  app.addHook("preParsing", (request, reply, _payload, done) => {
    const { cost } = request;
    if (!cost || cost.isCounted || isCountedByRoute(request)) return done();
    const isKnown = limiter.knownRefusal(toItems(request.session?.userId, cost, limits)) !== undefined;
    const counting = count(request, reply, cost);
    if (isKnown || !runsWhileCounted(request, cost)) return void counting.then(() => done(), done);
    counting.catch(() => {}); // onSend reads it.
    cost.counting = counting;
    done();
  });

  // Reads that ran while they were counted, and requests that were refused before preParsing.
  app.addHook("onSend", (request, reply, payload, done) => {
    const cost = request.cost ?? toCost(request, limits);
    const counting = cost.isCounted ? cost.counting : count(request, reply, cost);
    if (!counting) return done(null, payload);
    counting.then(
      () => done(null, payload),
      (problem: Problem) => done(null, problem.status === 429 ? replaceResponse(request, reply, problem) : payload),
    );
  });
}

/** Counted with its response unless its route has counted it before. */
const isCountedByRoute = ({ routeOptions }: FastifyRequest): boolean => routeOptions.config?.countedByRoute === true;

/** A stream has no end at which it could be refused, and a login is more than a read. */
const runsWhileCounted = ({ method, routeOptions }: FastifyRequest, { limit }: Cost): boolean =>
  isSafe(method) && limit === "read" && !routeOptions.config?.longLived;

/**
 * Turns a response that is being sent into the problem. Nothing that describes the former body may stay: a file is compressed,
 * and may be cached for a year.
 */
function replaceResponse(request: FastifyRequest, reply: FastifyReply, problem: Problem): string {
  for (const name of ["allow", "content-encoding", "etag", "location", "www-authenticate"]) reply.removeHeader(name);
  reply
    .code(problem.status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .header("cache-control", "no-store")
    .header("retry-after", problem.retryAfterSeconds);
  return JSON.stringify({ ...problem.toJSON(), instance: request.id });
}

const defaultClass = (method: string): LimitClass => (isSafe(method) ? "read" : "write");

// Health probes are never limited.
const probes: ReadonlySet<string> = new Set(["/livez", "/readyz"]);

function toCost(request: FastifyRequest, limits: Limits): Cost {
  const { url = "", config } = request.routeOptions;
  const limit = request.is404 ? "read" : (config?.limit ?? defaultClass(request.method));
  const units = config?.units ?? 1;
  const address = clientAddress({
    socketAddress: request.ip,
    forwardedFor: request.headers["x-forwarded-for"]?.toString(),
    trustedProxies: limits.trustedProxies,
  });
  const ofAddress = { key: `address/${address}`, units, policy: limits.address };
  return { limit, units, address: ofAddress, isCounted: probes.has(url), leave: () => {} };
}

function toItems(
  userId: string | undefined,
  { limit, units, address }: Cost,
  { classes }: Limits,
): readonly LimitItem[] {
  const whose = userId === undefined ? address.key : `user/${userId}`;
  return [{ key: `${whose}/${limit}`, units, policy: classes[limit] }, address];
}

/** A request that counts more than the burst would always be refused, so the gateway does not start. */
function rejectImpossible({ url, method, config }: RouteOptions, { classes, address }: Limits): void {
  const limit = config?.limit ?? defaultClass([method].flat().join());
  const burst = Math.min(burstSize(classes[limit]), burstSize(address));
  const units = config?.units ?? 1;
  if (units > burst) {
    throw new Error(
      `${url} counts as ${units} calls, but at most ${burst} of "${limit}" are available at once: ` +
        `raise GATEWAY_BFF_LIMIT_${limit.toUpperCase()}, or GATEWAY_BFF_LIMIT_ADDRESS`,
    );
  }
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** The class of its requests; by default read for safe methods and write for others. */
    limit?: LimitClass;
    /** How many requests it counts as. */
    units?: number;
    /** The route counts its requests itself; those it did not count are counted with the response. */
    countedByRoute?: boolean;
    /** A stream: once granted, it does not count among the requests in flight of its address. */
    longLived?: boolean;
  }
  interface FastifyRequest {
    /** What the request counts as; see limits/hook.ts. */
    cost: Cost | undefined;
  }
}
