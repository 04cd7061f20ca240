/**
 * Counts every request, and refuses it with 429 when its caller has had enough: by user where somebody is logged in, by
 * address where not, and everybody together by address.
 *
 * What a request counts as is said by the route that it matched, so that no way of writing a path counts as something
 * else; what matches no route counts as a read. Who is refused for another reason (401, 403, 404) is counted all the same.
 * While the limiter cannot be asked, log-ins and whatever could change something are refused with 503, and reads pass as far
 * as this process alone may grant them: a player can look, and nobody can guess or flood.
 */
import { type HttpApp, perSecond, problems } from "@todoke/http";
import type { Problem } from "@todoke/kernel/problem";
import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { isSafe } from "../guard/csrf.ts";
import { tellLimited } from "../telemetry.ts";
import { addressOf } from "./address.ts";
import { FloodingUsers } from "./flooding-users.ts";
import { burstOf } from "./gcra.ts";
import { refusalOf, tellLimits } from "./headers.ts";
import { InFlight } from "./in-flight.ts";
import type { Item, Taken } from "./index.ts";
import type { RememberingLimiter } from "./refusals.ts";
import type { LimitClass, Limits } from "./settings.ts";

export interface LimitOptions {
  readonly limiter: RememberingLimiter;
  readonly limits: Limits;
  /** Hears of requests that were refused, and of those that could not be counted; they are metrics otherwise. */
  readonly onLimited?: (limit: LimitClass, result: "refused" | "uncounted") => void;
  readonly onError: (error: unknown) => void;
  /** A limiter that takes longer is as good as away. */
  readonly waitMaxMs?: number;
}

/** What a request takes, known from its headers alone. */
interface Cost {
  readonly limit: LimitClass;
  readonly units: number;
  /** What all that comes from its address takes from. */
  readonly address: Item;
  /** Whether it has been taken, or is being. */
  isTaken: boolean;
  /** From now on it is not counted among the requests in flight. */
  leave: () => void;
}

export function limitRequests(app: HttpApp, options: LimitOptions): void {
  const { limiter, limits, onLimited = tellLimited, onError, waitMaxMs = 1_000 } = options;
  const inFlight = new InFlight(limits.inFlightMax);
  const floodingUsers = new FloodingUsers();
  // A limiter that is away fails every request alike: one line a second says so, and how many.
  const tellUncounted = perSecond<unknown>({
    max: 1,
    write: (cause, count) => onError(new Error(`counting failed for ${count} requests`, { cause })),
  });
  app.decorateRequest("cost", undefined);
  app.addHook("onRoute", (route) => refuseImpossible(route, limits));

  /** Throws when the request is refused. */
  async function takeFor(request: FastifyRequest, reply: FastifyReply, cost: Cost): Promise<void> {
    cost.isTaken = true;
    const taken = await within(waitMaxMs, limiter.take(itemsOf(request.session?.userId, cost, limits))).catch(
      (cause) => {
        tellUncounted(cause);
        onLimited(cost.limit, "uncounted");
        if (cost.limit !== "login" && isSafe(request.method)) return undefined;
        throw problems.unavailable("requests cannot be counted just now; try again", { retryAfterSeconds: 1 });
      },
    );
    if (taken && !taken.granted && request.session) floodingUsers.remember(request, request.session.userId);
    if (taken) settle(taken, cost, reply);
    // A stream stays open for hours, and many players may share an address.
    if (request.routeOptions.config?.longLived) cost.leave();
  }

  /** Throws when too many requests of the address are being answered already. */
  function enter({ raw }: FastifyReply, cost: Cost): void {
    const leave = inFlight.begin(cost.address.key);
    if (!leave) {
      cost.isTaken = true;
      onLimited(cost.limit, "refused");
      throw problems.tooManyInFlight(`no more than ${inFlight.max} requests of one address at a time`, {
        retryAfterSeconds: 1,
      });
    }
    cost.leave = leave;
    raw.once("close", leave);
  }

  function settle(taken: Taken, { limit }: Cost, reply: FastifyReply): void {
    tellLimits(reply, taken);
    if (taken.granted) return;
    onLimited(limit, "refused");
    throw refusalOf(taken);
  }

  // Whoever has had enough gets no further: no session is looked for, no body is read.
  app.addHook("onRequest", (request, reply, done) => {
    const cost = costOf(request, limits);
    request.cost = cost;
    const userId = floodingUsers.find(request);
    const items = userId === undefined ? [cost.address] : itemsOf(userId, cost, limits);
    const refused = cost.isTaken || isCountedByRoute(request) ? undefined : limiter.refused(items);
    if (refused) {
      cost.isTaken = true;
      settle(refused, cost, reply);
    }
    if (!cost.isTaken && !isCountedByRoute(request)) enter(reply, cost);
    done();
  });

  // After it is known who calls, and before anything of a body is read: all that a request takes is taken in one step.
  app.addHook("preParsing", (request, reply, _payload, done) => {
    const { cost } = request;
    if (!cost || cost.isTaken || isCountedByRoute(request)) done();
    else takeFor(request, reply, cost).then(() => done(), done);
  });

  // What was refused before it got that far.
  app.addHook("onSend", (request, reply, payload, done) => {
    const cost = request.cost ?? costOf(request, limits);
    if (cost.isTaken) {
      done(null, payload);
      return;
    }
    takeFor(request, reply, cost).then(
      () => done(null, payload),
      (problem: Problem) => done(null, problem.status === 429 ? insteadOf(request, reply, problem) : payload),
    );
  });
}

/** It is counted when it is answered, as any other, unless its route has counted it until then. */
const isCountedByRoute = ({ routeOptions }: FastifyRequest): boolean => routeOptions.config?.countedByRoute === true;

/** An answer that is on its way already becomes this one. */
function insteadOf(request: FastifyRequest, reply: FastifyReply, problem: Problem): string {
  for (const name of ["allow", "www-authenticate"]) reply.removeHeader(name);
  reply
    .code(problem.status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .header("retry-after", problem.retryAfterSeconds);
  return JSON.stringify({ ...problem.toJSON(), instance: request.id });
}

const usualClass = (method: string): LimitClass => (isSafe(method) ? "read" : "write");

// Those who ask whether we live must learn it, whatever else goes on.
const probes: ReadonlySet<string> = new Set(["/livez", "/readyz"]);

function costOf(request: FastifyRequest, limits: Limits): Cost {
  const { url = "", config } = request.routeOptions;
  const limit = request.is404 ? "read" : (config?.limit ?? usualClass(request.method));
  const units = config?.units ?? 1;
  const address = addressOf({
    socketAddress: request.ip,
    forwardedFor: request.headers["x-forwarded-for"]?.toString(),
    trustedProxies: limits.trustedProxies,
  });
  const ofAddress = { key: `address/${address}`, units, policy: limits.address };
  return { limit, units, address: ofAddress, isTaken: probes.has(url), leave: () => {} };
}

function itemsOf(userId: string | undefined, { limit, units, address }: Cost, { classes }: Limits): readonly Item[] {
  const whose = userId === undefined ? address.key : `user/${userId}`;
  return [{ key: `${whose}/${limit}`, units, policy: classes[limit] }, address];
}

/** A call that costs more than can be had at once would always be refused: better that the gateway does not start. */
function refuseImpossible({ url, method, config }: RouteOptions, { classes, address }: Limits): void {
  const limit = config?.limit ?? usualClass([method].flat().join());
  const most = Math.min(burstOf(classes[limit]), burstOf(address));
  const units = config?.units ?? 1;
  if (units > most) {
    throw new Error(
      `${url} counts as ${units} calls, but no more than ${most} of "${limit}" can be had at once: ` +
        `raise GATEWAY_BFF_LIMIT_${limit.toUpperCase()}, or GATEWAY_BFF_LIMIT_ADDRESS`,
    );
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a call of the route counts as; without it, a read where the method is safe, and a write where not. */
    limit?: LimitClass;
    /** How many calls it counts as: more for what does more. */
    units?: number;
    /** The route finds out first by whom it is to be counted; what it did not count is counted when it is answered. */
    countedByRoute?: boolean;
    /** A stream: once it is granted, it is not counted among the requests in flight of its address. */
    longLived?: boolean;
  }
  interface FastifyRequest {
    /** What the request takes of its caller's limits; see limits/hook.ts. */
    cost: Cost | undefined;
  }
}
