/**
 * Reads of several users that wait for the same service share one call (docs/adr/0100). A read that comes alone is sent at once, with the
 * token of its user; those that arrive while it runs are sent together when it ends, with the gateway's own. A read therefore
 * always begins after its request arrived.
 *
 * A slow call holds the next one back for `holdMs` only, so that a service that hangs delays no read. What a shared call cannot
 * tell about a user (an older build of the service, a user that is unknown), the user's own call does.
 */
import { Problem } from "@todoke/kernel/problem";
import type { Call } from "./client.ts";
import type { UpstreamResponse } from "./result.ts";

/** A call of a route for one user that the service also has for many. */
export type SharedCall = Call & Required<Pick<Call, "user" | "sharedAs" | "timeoutMs">>;

export interface SharedReadsOptions {
  /** Makes one call. */
  readonly call: (call: Call) => Promise<UpstreamResponse>;
  /** For a response that cannot be read. */
  readonly unreadable: () => Problem;
  readonly holdMs?: number;
}

interface Waiting {
  readonly call: SharedCall;
  readonly deadlineMs: number;
  readonly resolve: (response: UpstreamResponse | Promise<UpstreamResponse>) => void;
  readonly reject: (error: unknown) => void;
}

// As many as the services accept (packages/http/shared-reads.ts).
const usersMax = 64;
// An older build does not have the route. Its replacement is there within minutes.
const pauseMs = 60_000;

export function shareReads({ call, unreadable, holdMs = 20 }: SharedReadsOptions) {
  const queues = new Map<string, (one: SharedCall) => Promise<UpstreamResponse>>();

  function openQueue(name: string) {
    let waiting: Waiting[] = [];
    let isHeld = false;
    let pausedUntilMs = 0;

    /** Sends all that wait, so that none waits longer than `holdMs`. */
    function sendAll(): void {
      const calls: Promise<void>[] = [];
      for (let first = 0; first < waiting.length; first += usersMax)
        calls.push(send(waiting.slice(first, first + usersMax)));
      waiting = [];
      let isReleased = false;
      const release = () => {
        if (isReleased) return;
        isReleased = true;
        clearTimeout(timeout);
        if (waiting.length > 0) sendAll();
        else isHeld = false;
      };
      const timeout = setTimeout(release, holdMs);
      void Promise.all(calls).finally(release);
    }

    /** Never rejects. */
    async function send(batch: readonly Waiting[]): Promise<void> {
      if (batch.length === 1) return sendAlone(batch);
      try {
        const path = `/shared-reads/${name}?user_ids=${batch.map(({ call }) => encodeURIComponent(call.user.userId)).join(",")}`;
        const timeoutMs = Math.max(1, Math.min(...batch.map(({ deadlineMs }) => deadlineMs)) - performance.now());
        const responses = readResults((await call({ method: "GET", path, timeoutMs })).value, batch.length);
        if (!responses) throw unreadable();
        const unknown = batch.filter((one, index) => {
          const response = responses[index];
          if (response) one.resolve(response);
          return !response;
        });
        await sendAlone(unknown);
      } catch (error) {
        const isRefused = error instanceof Problem && error.status < 500;
        if (!isRefused) for (const one of batch) one.reject(error);
        else {
          pausedUntilMs = performance.now() + pauseMs;
          await sendAlone(batch);
        }
      }
    }

    async function sendAlone(batch: readonly Waiting[]): Promise<void> {
      await Promise.allSettled(
        batch.map(({ call: one, deadlineMs, resolve, reject }) => {
          const response = call({ ...one, timeoutMs: Math.max(1, deadlineMs - performance.now()) });
          response.then(resolve, reject);
          return response;
        }),
      );
    }

    return (one: SharedCall): Promise<UpstreamResponse> => {
      if (performance.now() < pausedUntilMs) return call(one);
      return new Promise((resolve, reject) => {
        waiting.push({ call: one, deadlineMs: performance.now() + one.timeoutMs, resolve, reject });
        if (isHeld) return;
        isHeld = true;
        setImmediate(sendAll); // After this turn, so that all requests read in it share the call.
      });
    };
  }

  return (one: SharedCall): Promise<UpstreamResponse> => queues.getOrInsertComputed(one.sharedAs, openQueue)(one);
}

/** Undefined where the service has no result. Undefined altogether if the response has another form. */
function readResults(value: unknown, length: number): readonly (UpstreamResponse | undefined)[] | undefined {
  const { results } = (value ?? {}) as { results?: unknown };
  if (!Array.isArray(results) || results.length !== length) return undefined;
  try {
    return results.map((result) => (result === null ? undefined : toResponse(result)));
  } catch {
    return undefined; // One of the bodies is no JSON.
  }
}

function toResponse({ status, body, etag }: { status: number; body: string; etag?: string }): UpstreamResponse {
  const value = body === "" ? undefined : JSON.parse(body);
  return { status, body, value, replayed: false, ...(etag !== undefined && { etag }) };
}
