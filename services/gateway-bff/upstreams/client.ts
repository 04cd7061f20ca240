/**
 * Asks one service, and lets nobody down with it:
 *
 *  - a call is over when its time is, whatever the service does; the caller is told which service failed, and how;
 *  - a service that hangs holds its own places only (bulkhead.ts); one that fails again and again is left alone for a while;
 *  - a call that may be repeated is tried once more, after a short pause, within its time and within the budget;
 *  - a service hears what is in `Call` and nothing else: no header of a client ever goes on by itself.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type CircuitBreaker, circuitBreaker, type Role, type Signer } from "@todoke/http";
import { inSpan, traceHeaders } from "@todoke/kernel/telemetry";
import { Pool } from "undici";
import { upstreamProblems } from "../problems.ts";
import { spanNames, tellCall, tellTry } from "../telemetry.ts";
import { bulkhead } from "./bulkhead.ts";
import { exchange, NoAnswer, type Wish } from "./exchange.ts";
import { retryBudget } from "./retry-budget.ts";
import { type Answer, type Asked, type UpstreamName, type Verdict, verdictOn, verdictOnSilence } from "./verdict.ts";

export interface Call extends Pick<Wish, "method" | "path" | "body"> {
  /** For whom; without, the gateway asks for itself. */
  readonly user?: { readonly userId: string; readonly roles: readonly Role[] };
  /** The id of the request that this is part of, so that both logs have the same. */
  readonly requestId?: string;
  readonly idempotencyKey?: string;
  readonly ifMatch?: string;
  /** Twice does no harm: true of every GET, and of others that say so. */
  readonly repeatable?: boolean;
  readonly timeoutMs?: number;
}

export interface Upstream extends AsyncDisposable {
  /** A success; anything else is thrown as a Problem. */
  call(call: Call): Promise<Answer>;
}

export interface UpstreamOptions {
  readonly name: UpstreamName;
  readonly url: URL;
  readonly tokenFor: Signer["tokenFor"];
  readonly timeoutMs?: number;
  readonly underWayMax?: number;
  readonly waitingMax?: number;
  readonly breaker?: CircuitBreaker;
}

// A service that was restarted is there again within seconds: it is looked for sooner than a webhook's receiver.
const usualBreaker = () => circuitBreaker({ failuresMax: 5, openMs: 5_000 });
// Within one network a connection takes a millisecond. What takes a second will not come.
const connectMaxMs = 1_000;

export function openUpstream(options: UpstreamOptions): Upstream {
  const { name, url, tokenFor, timeoutMs = 2_000, underWayMax = 64, waitingMax = 128 } = options;
  const { breaker = usualBreaker() } = options;
  const problems = upstreamProblems[name];
  const places = bulkhead({ underWayMax, waitingMax });
  const budget = retryBudget();
  const pool = new Pool(url.origin, {
    connections: underWayMax,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: Math.min(timeoutMs, connectMaxMs) },
    // exchange.ts has a deadline for the whole.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  async function attempt(call: Call, asked: Asked, deadlineMs: number): Promise<Verdict> {
    if (!(await places.enter(deadlineMs - performance.now())))
      return notAsked("has too many requests to answer", 1_000);
    try {
      const waitMs = breaker.waitMs();
      if (waitMs > 0) return notAsked("has failed again and again and is left alone for a while", waitMs);
      const verdict = await ask(call, asked, deadlineMs);
      if (verdict.result !== "ok" && verdict.ill) breaker.failed();
      else breaker.succeeded();
      return verdict;
    } finally {
      places.leave();
    }
  }

  /** The call is over before the service has heard of it. */
  function notAsked(why: string, waitMs: number): Verdict {
    const problem = problems.unavailable(`${name} ${why}`, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
    return { result: "unavailable", problem, ill: true, again: false };
  }

  async function ask(call: Call, asked: Asked, deadlineMs: number): Promise<Verdict> {
    const headers = await headersOf(call);
    const { method, path, body } = call;
    const leftMs = Math.max(1, Math.ceil(deadlineMs - performance.now()));
    try {
      const wish = { method, path, headers, timeoutMs: leftMs, ...(body !== undefined && { body }) };
      return verdictOn(asked, await exchange(pool, wish));
    } catch (error) {
      if (error instanceof NoAnswer) return verdictOnSilence(asked, error);
      throw error;
    }
  }

  /** The only headers that ever go to a service. */
  async function headersOf({ user, requestId, idempotencyKey, ifMatch, body }: Call): Promise<Record<string, string>> {
    const { traceparent } = traceHeaders();
    return {
      accept: "application/json",
      authorization: `Bearer ${await tokenFor(name, user)}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(requestId !== undefined && { "x-request-id": requestId }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...(ifMatch !== undefined && { "if-match": ifMatch }),
      ...(traceparent !== undefined && { traceparent }),
    };
  }

  async function lastVerdict(call: Call, deadlineMs: number): Promise<Verdict> {
    const { repeatable = call.method === "GET" } = call;
    const asked = { name, problems, repeatable };
    budget.earn();
    for (let mayRepeat = repeatable; ; mayRepeat = false) {
      const verdict = await attempt(call, asked, deadlineMs);
      tellTry(name, verdict.result);
      if (verdict.result === "ok" || !verdict.again || !mayRepeat) return verdict;
      const pauseMs = pauseMinMs * (1 + Math.random());
      if (performance.now() + pauseMs >= deadlineMs || !budget.spend()) return verdict;
      await sleep(pauseMs);
    }
  }

  async function call(call: Call): Promise<Answer> {
    const sinceMs = performance.now();
    const verdict = await lastVerdict(call, sinceMs + (call.timeoutMs ?? timeoutMs));
    tellCall(name, verdict.result, sinceMs);
    if (verdict.result === "ok") return verdict.answer;
    throw verdict.problem;
  }

  return {
    call: (wish) => inSpan(spanNames.upstream, { upstream: name }, () => call(wish)),
    async [Symbol.asyncDispose]() {
      await pool.close();
    },
  };
}

// Long enough for a service that is being replaced to hand over, short enough that nobody notices.
const pauseMinMs = 25;
