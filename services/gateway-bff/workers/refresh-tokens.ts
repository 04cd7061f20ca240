/**
 * Refreshes the provider's tokens of sessions in use, and so learns whether the provider still accepts the session.
 *
 * One process at a time refreshes a session: a provider that rotates refresh tokens takes a second use for theft and ends
 * the login. So a token is sent only under a lease that is still young: a process that was frozen sends nothing, and its
 * late refusal ends nothing. New tokens replace the only valid ones, so storing them is retried while the lease lasts.
 *
 * A refused refresh token ends the session; an unavailable provider does not, and the refresh is retried later. No request
 * waits for any of this.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { backoffMs } from "@todoke/kernel/worker";
import type { Provider } from "../oidc/provider.ts";
import type { ProviderTokens, RefreshClaim, Session, SessionStore } from "../sessions/index.ts";

export interface RefreshOptions {
  readonly sessions: Pick<SessionStore, "claimRefresh" | "saveTokens" | "postponeRefresh" | "endOnRefusedRefresh">;
  readonly provider: Pick<Provider, "refresh">;
  readonly onError: (error: unknown) => void;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** Starts a refresh unless one is in flight. Disposing waits for them, so that new tokens are stored. */
export interface RefreshTokens extends AsyncDisposable {
  (session: Pick<Session, "sessionId" | "userId">): void;
}

// Far longer than the calls of one refresh (three of 5 s each), so that the next claim may assume an unused refresh token.
// Nothing else waits for the end of a lease.
const leaseMs = 120_000;
// A token that is not sent by then is not sent at all. The rest of the lease is for the response and for storing it.
const sendWithinMs = 20_000;
const retryDelayMs = 10_000;
const saveBackoff = { baseMs: 25, capMs: 2_000 };
// A stopping process waits no longer than this for an unavailable store.
const saveWhileStoppingMs = 10_000;
// A session without a refresh token is due again when it has long ended.
const neverMs = 24 * 3_600_000;
// Sessions beyond this are refreshed at a later request.
const inFlightMax = 100;

/** The lease counts from before the store was asked, by our own clock. */
interface Lease {
  readonly claim: RefreshClaim;
  readonly startedAt: number;
}

export function refreshTokens({
  sessions,
  provider,
  onError,
  now = () => performance.now(),
}: RefreshOptions): RefreshTokens {
  const inFlight = new Map<string, Promise<void>>();
  let stopAt = Number.POSITIVE_INFINITY;

  async function save({ claim, startedAt }: Lease, tokens: ProviderTokens): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const delayMs = backoffMs(attempt, saveBackoff);
      try {
        // False if an earlier attempt stored them and its response was lost, or if the session has ended.
        await sessions.saveTokens(claim, tokens);
        return;
      } catch (error) {
        if (now() + delayMs >= Math.min(startedAt + leaseMs, stopAt)) throw error;
      }
      await sleep(delayMs);
    }
  }

  async function refreshOne(sessionId: string): Promise<void> {
    const startedAt = now();
    const claim = await sessions.claimRefresh(sessionId, leaseMs);
    if (!claim) return;
    if (!claim.tokens.refreshToken) return sessions.postponeRefresh(claim, neverMs);
    const result = await provider
      .refresh(claim.tokens, () => {
        if (now() - startedAt > sendWithinMs) throw new Error("the process was frozen for too long to use its lease");
      })
      .catch(async (error: unknown) => {
        await sessions.postponeRefresh(claim, retryDelayMs);
        throw error;
      });
    if (result.kind === "refreshed") await save({ claim, startedAt }, result.tokens);
    else await sessions.endOnRefusedRefresh(claim);
  }

  const start = ({ sessionId }: Pick<Session, "sessionId" | "userId">): void => {
    if (inFlight.has(sessionId) || inFlight.size >= inFlightMax) return;
    const done = refreshOne(sessionId)
      .catch((cause) => onError(new Error("refreshing the tokens of a session failed", { cause })))
      .finally(() => inFlight.delete(sessionId));
    inFlight.set(sessionId, done);
  };

  return Object.assign(start, {
    async [Symbol.asyncDispose](): Promise<void> {
      stopAt = now() + saveWhileStoppingMs;
      await Promise.all(inFlight.values());
    },
  });
}
