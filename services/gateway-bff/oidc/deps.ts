/** What log-in and log-out are made from. */
import type { Authenticate } from "@todoke/http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SessionStore } from "../sessions/index.ts";
import type { ResolveIdentity } from "./identity.ts";
import { problemsAsPages } from "./problem-page.ts";
import type { Provider } from "./provider.ts";

export interface OidcDeps {
  readonly provider: Provider;
  readonly sessions: SessionStore;
  readonly resolveIdentity: ResolveIdentity;
  /** Knows players by their session. */
  readonly authenticate: Authenticate;
  /** As players see us: `https://play.example`. */
  readonly origin: string;
  /** We are reached over http on loopback. */
  readonly isLoopback: boolean;
  /** Where native clients may be sent back to, beside their own machine: whole addresses, or schemes with their colon. */
  readonly nativeRedirects: readonly string[];
  /** How old a log-in may be for an act that needs a fresh one (routes/forward.ts). */
  readonly reauthenticateMs: number;
  /** Counts a genuine back-channel log-out by its issuer; throws when that is one too many. */
  readonly countLogout: (request: FastifyRequest, reply: FastifyReply, issuer: string) => Promise<void>;
  /** For what goes wrong without keeping anybody in or out. */
  readonly onError: (error: unknown) => void;
}

/** For the options of a route that begins a log-in. */
export const toBegin = { config: { rule: { everybody: true }, limit: "login" } } as const;

/**
 * Of one that ends what was begun. A log-in counts where it begins, and not again. What these take can be guessed by nobody.
 */
export const toEnd = { config: { rule: { everybody: true }, limit: "write" } } as const;

/** Of one that a person's browser is sent to. A HEAD must neither begin a log-in nor use one up. */
export const forBrowsers = { ...problemsAsPages, exposeHeadRoute: false };
