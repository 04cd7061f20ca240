/**
 * Keeps the provider's tokens of a session alive, and learns by it whether the provider still wants the session.
 *
 * One process at a time refreshes a session's tokens: a provider that rotates refresh tokens takes a second use of one for
 * theft, and ends the log-in. So a token is sent only by who has the turn and has had it for a short time only: a process
 * that was frozen meanwhile sends nothing, and its late word that the provider refused ends nothing. New tokens are the
 * only ones left, so storing them is retried while the turn lasts.
 *
 * A refresh token that the provider takes no more ends the session; a provider that is away does not: it is asked again
 * later. Nobody's request waits for any of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ProviderTokens, Refresh, Session, SessionStore } from "../sessions/index.ts";
import type { Provider } from "./provider.ts";

export interface RefreshOptions {
  readonly sessions: Pick<SessionStore, "takeRefresh" | "saveTokens" | "giveUpRefresh" | "endRefused">;
  readonly provider: Pick<Provider, "refresh">;
  readonly onError: (error: unknown) => void;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** Begins a refresh, unless one is under way. Disposing it waits for those: tokens that were given are stored. */
export interface RefreshTokens extends AsyncDisposable {
  (session: Pick<Session, "sessionId" | "userId">): void;
}

// A turn lasts far longer than all the calls of one refresh together (three of 5 s each): whoever has the next one may
// take it that the refresh token was not used. Nothing else waits for the end of a turn, so a long one costs nobody.
const holdMs = 120_000;
// A token that was not sent by then is not sent at all. What is left of the turn is for its answer, and to store it.
const sendWithinMs = 20_000;
const againMs = 10_000;
const saveAgainMs = { first: 50, most: 2_000 };
// A process that stops does not wait longer than this for a store that is away.
const saveWhileStoppingMs = 10_000;
// A session without a refresh token is looked at again when it has long ended by its own time.
const neverMs = 24 * 3_600_000;
// Beyond this they wait for a later request of theirs.
const underWayMax = 100;

/** A turn, and until when it lasts by our clock: it was counted from before the store was asked. */
interface Turn {
  readonly refresh: Refresh;
  readonly begunAt: number;
}

export function refreshTokens({
  sessions,
  provider,
  onError,
  now = () => performance.now(),
}: RefreshOptions): RefreshTokens {
  const underWay = new Map<string, Promise<void>>();
  let stopAt = Number.POSITIVE_INFINITY;

  async function save({ refresh, begunAt }: Turn, tokens: ProviderTokens): Promise<void> {
    for (let pauseMs = saveAgainMs.first; ; pauseMs = Math.min(2 * pauseMs, saveAgainMs.most)) {
      try {
        // False after an attempt whose answer was lost: then they are stored. Or the session has ended.
        await sessions.saveTokens(refresh, tokens);
        return;
      } catch (error) {
        if (now() + pauseMs >= Math.min(begunAt + holdMs, stopAt)) throw error;
      }
      await sleep(pauseMs);
    }
  }

  async function refreshOne(sessionId: string): Promise<void> {
    const begunAt = now();
    const refresh = await sessions.takeRefresh(sessionId, holdMs);
    if (!refresh) return;
    if (!refresh.tokens.refreshToken) return sessions.giveUpRefresh(refresh, neverMs);
    const refreshed = await provider
      .refresh(refresh.tokens, () => {
        if (now() - begunAt > sendWithinMs) throw new Error("the process stood still for too long to use its turn");
      })
      .catch(async (error: unknown) => {
        await sessions.giveUpRefresh(refresh, againMs);
        throw error;
      });
    if (refreshed.kind === "refreshed") await save({ refresh, begunAt }, refreshed.tokens);
    else await sessions.endRefused(refresh);
  }

  const begin = ({ sessionId }: Pick<Session, "sessionId" | "userId">): void => {
    if (underWay.has(sessionId) || underWay.size >= underWayMax) return;
    const end = refreshOne(sessionId)
      .catch((cause) => onError(new Error("refreshing the tokens of a session failed", { cause })))
      .finally(() => underWay.delete(sessionId));
    underWay.set(sessionId, end);
  };

  return Object.assign(begin, {
    async [Symbol.asyncDispose](): Promise<void> {
      stopAt = now() + saveWhileStoppingMs;
      await Promise.all(underWay.values());
    },
  });
}
