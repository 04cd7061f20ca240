/** The dependencies of the routes, and how the stores among them are opened. */
import type { Authenticate, Signer } from "@todoke/http";
import type { Db } from "@todoke/kernel/db";
import { connectRedis, createScript } from "@todoke/redis";
import type { ServeStaff } from "@todoke/service";
import type { FoundEntries, WhyQuestion } from "@todoke/service/why";
import type { Settings } from "./config.ts";
import type { Limiter } from "./limits/index.ts";
import type { LocalLimiter } from "./limits/local-limiter.ts";
import { postgresLimiter } from "./limits/postgres.ts";
import { redisLimiter } from "./limits/redis.ts";
import type { ResolveIdentity } from "./oidc/identity.ts";
import type { Provider } from "./oidc/provider.ts";
import type { StaffStreamDeps } from "./routes/staff-stream.ts";
import type { SessionStore } from "./sessions/index.ts";
import { postgresSessions } from "./sessions/postgres.ts";
import { redisSessions } from "./sessions/redis.ts";
import type { Upstreams } from "./upstreams/index.ts";

type RouteSettings = Pick<
  Settings,
  "origin" | "isLoopback" | "nativeRedirects" | "reauthenticateMs" | "limits" | "profileTimeoutMs"
> &
  Partial<Pick<Settings, "limiterTimeoutMs" | "ordersUrl">>;

export interface Deps extends RouteSettings {
  /** Authenticates players by their session. */
  readonly authenticate: Authenticate;
  readonly db: Db;
  readonly sessions: SessionStore;
  readonly limiter: LocalLimiter;
  readonly upstreams: Upstreams;
  readonly urls: Settings["upstreams"]["urls"];
  readonly tokenFor: Signer["tokenFor"];
  readonly provider: Provider;
  readonly resolveIdentity: ResolveIdentity;
  /** Looks up an id in the gateway's own database. */
  readonly findEntries: (question: WhyQuestion) => Promise<FoundEntries>;
  /** Serves the API documents of the services unless it is false. */
  readonly apiDocs?: boolean;
  /** How long notification may take to start a stream. */
  readonly streamTimeoutMs?: number;
  /** For tests of the stream of changes. */
  readonly changes?: Partial<Pick<StaffStreamDeps, "beatMs" | "checkMs" | "streamsOfUserMax">> & {
    readonly intervalMs?: number;
  };
  /** Registers the routes that every service has for staff. */
  readonly serveStaff: ServeStaff;
  /** For errors that fail no request. */
  readonly onError: (error: unknown) => void;
}

interface StoreParts {
  readonly db: Db;
  use<T extends AsyncDisposable>(part: T): T;
  addReadinessCheck(name: string, check: () => Promise<unknown>): void;
  onError(error: unknown): void;
}

const ping = createScript("return 1");

/** Opens sessions and limits: in Redis if it is configured, else in PostgreSQL. */
export function openStores(
  { redisUrl: url, sessions: settings }: Pick<Settings, "redisUrl" | "sessions">,
  { db, use, addReadinessCheck, onError }: StoreParts,
): { readonly sessions: SessionStore; readonly limiter: Limiter } {
  if (url === undefined) return { sessions: use(postgresSessions(db, settings)), limiter: postgresLimiter(db) };
  // A connection each: counting a flood does not delay the look-up of sessions.
  const link = use(connectRedis({ url, onError }));
  addReadinessCheck("redis", () => link.run(ping, { keys: [], arguments: [] }));
  return { sessions: use(redisSessions({ url, settings, onError })), limiter: redisLimiter(link) };
}
