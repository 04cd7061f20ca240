/**
 * Calls one service.
 *
 *  - A call ends at its timeout, and its problem names the service and the failure.
 *  - A service that hangs blocks only its own slots (bulkhead.ts); one that keeps failing is not called for a while.
 *  - A repeatable call is retried once after a short pause, within its timeout and the retry budget.
 *  - Reads of several users that wait for the same route share a call (shared-reads.ts).
 *  - A service receives only the fields of `Call`: no client header is passed on.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type CircuitBreaker, circuitBreaker, type Role, type Signer } from "@todoke/http";
import { inSpan, isSampled, traceHeaders } from "@todoke/kernel/telemetry";
import { Pool } from "undici";
import { type UpstreamName, upstreamProblems } from "../problems.ts";
import { countAttempt, recordCall, spanNames } from "../telemetry.ts";
import { bulkhead } from "./bulkhead.ts";
import { exchange, NoResponseError, type UpstreamRequest } from "./exchange.ts";
import {
  type CallContext,
  interpretFailure,
  interpretResponse,
  type UpstreamResponse,
  type UpstreamResult,
} from "./result.ts";
import { retryBudget } from "./retry-budget.ts";
import { shareReads } from "./shared-reads.ts";

export interface Call extends Pick<UpstreamRequest, "method" | "path" | "body"> {
  /** The user that the call is for; without one, the gateway calls for itself. */
  readonly user?: { readonly userId: string; readonly roles: readonly Role[] };
  /** The ID of the client's request, so that both logs have the same. */
  readonly requestId?: string;
  readonly idempotencyKey?: string;
  readonly ifMatch?: string;
  /** Idempotent, so it may be retried. True for GET by default. */
  readonly repeatable?: boolean;
  readonly timeoutMs?: number;
  /** The service has this read for many users, under this name: it may share a call with reads of others. */
  readonly sharedAs?: string;
}

export interface Upstream extends AsyncDisposable {
  /** Returns a success; throws anything else as a Problem. */
  call(call: Call): Promise<UpstreamResponse>;
}

export interface UpstreamOptions {
  readonly name: UpstreamName;
  readonly url: URL;
  readonly tokenFor: Signer["tokenFor"];
  readonly timeoutMs?: number;
  readonly concurrency?: number;
  readonly queueMax?: number;
  readonly breaker?: CircuitBreaker;
}

// A restarted service is back within seconds, so it is tried sooner than the receiver of a webhook.
const defaultBreaker = () => circuitBreaker({ failuresMax: 5, openMs: 5_000 });
// Staff searches whole tables, over few connections of the service: that such a call is slow says nothing of those of players.
const ofStaff = /^\/(?:v1\/)?admin\//;
// In one network a connection takes a millisecond. After a second it will not come.
const connectMaxMs = 1_000;
// Long enough for a restarting service to hand over, short enough to go unnoticed.
const retryDelayMinMs = 25;

export function openUpstream(options: UpstreamOptions): Upstream {
  const { name, url, tokenFor, timeoutMs = 2_000, concurrency = 64, queueMax = 128 } = options;
  const { breaker = defaultBreaker() } = options;
  const problems = upstreamProblems[name];
  const slots = bulkhead({ concurrency, queueMax });
  const budget = retryBudget();
  const pool = new Pool(url.origin, {
    connections: concurrency,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: Math.min(timeoutMs, connectMaxMs) },
    // exchange.ts has a deadline for the whole exchange.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  async function attempt(call: Call, context: CallContext, deadlineMs: number): Promise<UpstreamResult> {
    if (!(await slots.enter(deadlineMs - performance.now())))
      return notCalled("has too many requests in flight", 1_000);
    try {
      const waitMs = breaker.waitMs();
      if (waitMs > 0) return notCalled("failed repeatedly and is not called for a while", waitMs);
      const result = await send(call, context, deadlineMs);
      if (result.outcome === "ok" || !result.tripsBreaker) breaker.succeeded();
      else if (result.outcome !== "timeout" || !ofStaff.test(call.path)) breaker.failed();
      return result;
    } finally {
      slots.leave();
    }
  }

  function notCalled(reason: string, waitMs: number): UpstreamResult {
    const problem = problems.unavailable(`${name} ${reason}`, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
    return { outcome: "unavailable", problem, tripsBreaker: true, retryable: false };
  }

  async function send(call: Call, context: CallContext, deadlineMs: number): Promise<UpstreamResult> {
    const headers = await toHeaders(call);
    const { method, path, body } = call;
    const leftMs = Math.max(1, Math.ceil(deadlineMs - performance.now()));
    try {
      const request = { method, path, headers, timeoutMs: leftMs, ...(body !== undefined && { body }) };
      return interpretResponse(context, await exchange(pool, request));
    } catch (error) {
      if (error instanceof NoResponseError) return interpretFailure(context, error);
      throw error;
    }
  }

  /** The only headers that a service receives. */
  async function toHeaders({ user, requestId, idempotencyKey, ifMatch, body }: Call): Promise<Record<string, string>> {
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

  async function callWithRetry(call: Call, deadlineMs: number): Promise<UpstreamResult> {
    const { repeatable = call.method === "GET" } = call;
    const context = { name, problems, repeatable };
    budget.earn();
    for (let mayRetry = repeatable; ; mayRetry = false) {
      const result = await attempt(call, context, deadlineMs);
      countAttempt(name, result.outcome);
      if (result.outcome === "ok" || !result.retryable || !mayRetry) return result;
      const delayMs = retryDelayMinMs * (1 + Math.random());
      if (performance.now() + delayMs >= deadlineMs || !budget.spend()) return result;
      await sleep(delayMs);
    }
  }

  async function run(call: Call): Promise<UpstreamResponse> {
    const sinceMs = performance.now();
    const result = await callWithRetry(call, sinceMs + (call.timeoutMs ?? timeoutMs));
    recordCall(name, result.outcome, sinceMs);
    if (result.outcome === "ok") return result.response;
    throw result.problem;
  }

  const callOnce = (call: Call) => inSpan(spanNames.upstream, { upstream: name }, () => run(call));
  const unreadable = () => problems.badGateway(`${name}: its response is not a result for each user`);
  const share = shareReads({ call: callOnce, unreadable });

  return {
    call(call) {
      const { user, sharedAs } = call;
      // A trace that is recorded shows the call of its own request.
      if (sharedAs === undefined || !user || isSampled(traceHeaders())) return callOnce(call);
      return share({ timeoutMs, ...call, user, sharedAs });
    },
    async [Symbol.asyncDispose]() {
      await pool.close();
    },
  };
}
