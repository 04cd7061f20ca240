/** All that the routes reach outside themselves. */
import type { Authenticate } from "@todoke/http";
import type { SessionStore } from "./sessions/index.ts";
import type { Upstreams } from "./upstreams/index.ts";

export interface Deps {
  /** Knows players by their session, and nobody else. */
  readonly authenticate: Authenticate;
  readonly sessions: SessionStore;
  readonly upstreams: Upstreams;
  /** How long ago a user may have proven who they are, for what needs a fresh log-in. 0: that is not asked. */
  readonly reauthenticateMs: number;
  /** How long each part of a profile may take. */
  readonly profileTimeoutMs: number;
}
