/**
 * Keeps the provider's tokens of a session alive, and learns by it whether the provider still wants the session.
 *
 * One process at a time refreshes a session's tokens: a provider that rotates refresh tokens takes a second use of one for
 * theft. New tokens are stored before anything uses them. A refresh token that the provider takes no more ends the session;
 * a provider that is away does not: it is asked again later. Nobody's request waits for any of it.
 */
import type { Session, SessionStore } from "../sessions/index.ts";
import type { Provider } from "./provider.ts";

export interface RefreshOptions {
  readonly sessions: Pick<SessionStore, "takeRefresh" | "saveTokens" | "giveUpRefresh" | "end">;
  readonly provider: Pick<Provider, "refresh">;
  readonly onError: (error: unknown) => void;
}

/** Begins a refresh, unless one is under way. Disposing it waits for those: tokens that were given are stored. */
export interface RefreshTokens extends AsyncDisposable {
  (session: Pick<Session, "sessionId" | "userId">): void;
}

// Longer than all the calls of one refresh together: token endpoint, key set, metadata.
const holdMs = 20_000;
const againMs = 10_000;
// A session without a refresh token is looked at again when it has long ended by its own time.
const neverMs = 24 * 3_600_000;
// Beyond this they wait for a later request of theirs.
const underWayMax = 100;

export function refreshTokens({ sessions, provider, onError }: RefreshOptions): RefreshTokens {
  const underWay = new Map<string, Promise<void>>();

  async function refresh({ sessionId, userId }: Pick<Session, "sessionId" | "userId">): Promise<void> {
    const turn = await sessions.takeRefresh(sessionId, holdMs);
    if (!turn) return;
    if (!turn.tokens.refreshToken) return sessions.giveUpRefresh(turn, neverMs);
    try {
      const refreshed = await provider.refresh(turn.tokens);
      if (refreshed.kind === "refreshed") await sessions.saveTokens(turn, refreshed.tokens);
      else await sessions.end(userId, sessionId);
    } catch (error) {
      await sessions.giveUpRefresh(turn, againMs);
      throw error;
    }
  }

  const begin = (session: Pick<Session, "sessionId" | "userId">): void => {
    if (underWay.has(session.sessionId) || underWay.size >= underWayMax) return;
    const end = refresh(session)
      .catch((cause) => onError(new Error("refreshing the tokens of a session failed", { cause })))
      .finally(() => underWay.delete(session.sessionId));
    underWay.set(session.sessionId, end);
  };

  return Object.assign(begin, {
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(underWay.values());
    },
  });
}
