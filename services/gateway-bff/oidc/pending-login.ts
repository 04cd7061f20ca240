/** A login between its start and the provider's response. */
import { Problem } from "@todoke/kernel/problem";
import { countLogin } from "../telemetry.ts";
import type { LoginChecks } from "./exchange.ts";
import type { NativeClient } from "./native-client.ts";

/** How long a login may take. */
export const loginMs = 10 * 60_000;

/** Stored as JSON for up to `loginMs`, so its field names stay. */
export interface PendingLogin extends Omit<LoginChecks, "state"> {
  /** By the store's clock. */
  readonly begunAtMs: number;
  /** Hash of the binding cookie of the browser that started it. */
  readonly binding: string;
  readonly returnTo: string;
  /** The browser's session at the start: its SameSite=Strict cookie may be missing on the way back. */
  readonly previous?: SessionRef;
  readonly native?: NativeClient;
}

interface SessionRef {
  readonly userId: string;
  readonly sessionId: string;
}

export const endedAtProviderText = "the identity provider ended this login before it was complete; log in again";

/** Counts a failed login and rethrows its error. */
export function countFailedLogin(error: unknown): never {
  countLogin(error instanceof Problem ? error.code : "failed");
  throw error;
}
