/**
 * The harness of the gateway's tests: processes on one database, fake services behind them, and users who are logged in.
 * Tokens are really signed, and the services verify them.
 */
import { randomBytes } from "node:crypto";
import {
  buildHttpApp,
  httpMigrations,
  newSigningKey,
  openSigner,
  type Principal,
  type Role,
  tokenVerifier,
  toVerifyingKey,
} from "@todoke/http";
import { kernelMigrations } from "@todoke/kernel/migrations";
import { fixedId, testDatabase } from "@todoke/kernel/testing";
import { resolveIdentity } from "./commands/resolve-identity.ts";
import { readLimits } from "./config.ts";
import type { Deps } from "./deps.ts";
import { sessionGuard } from "./guard/session-guard.ts";
import { localLimiter } from "./limits/local-limiter.ts";
import { postgresLimiter } from "./limits/postgres.ts";
import { openProvider } from "./oidc/provider.ts";
import type { UpstreamName } from "./problems.ts";
import { gatewayRoutes } from "./routes/index.ts";
import type { SessionStore, UserSnapshot, UserStatus } from "./sessions/index.ts";
import { postgresSessions } from "./sessions/postgres.ts";
import { openUpstream } from "./upstreams/client.ts";
import { openUpstreams } from "./upstreams/index.ts";
import {
  answering,
  answeringEach,
  type Behaviour,
  fakeService,
  longMs,
  type ReceivedRequest,
} from "./upstreams/testing.ts";

const own = { name: "gateway-bff", dir: new URL("./migrations/", import.meta.url) };
const origin = "http://localhost:8080";
const signingKey = newSigningKey("test");

export const alice = fixedId(1);
export const bob = fixedId(2);
/** A ticket as matchmaking names them. */
export const ticketId = "duel.tZ0cWTr2w8wVnQ5bYxk1mO7PqLsd";

/** As points shows it. */
export const balanceView = { user_id: alice, balance: 7, held: 0, pending: 0, version: 1 };

/** A user as account shows it. */
export const userView = (user_id: string, more: object = {}) => ({
  user_id,
  status: "ACTIVE",
  display_name: "Somebody",
  roles: ["USER"],
  version: 1,
  created_at: "2026-01-08T07:10:00.123456Z",
  updated_at: "2026-01-08T07:10:00.123456Z",
  ...more,
});

/** Whom the token of a request speaks for, at the service that received it. */
export function bearerOf(audience: UpstreamName, { headers }: ReceivedRequest): Promise<Principal> {
  const verify = tokenVerifier({ audience, keys: [toVerifyingKey("gateway-bff", signingKey)] });
  return Promise.resolve(verify(headers.authorization?.slice("Bearer ".length) ?? ""));
}

/** Timeouts are longer than any test unless the test sets them. */
export interface ProcessOptions {
  /** Services that are not deployed. */
  readonly without?: readonly UpstreamName[];
  readonly profileTimeoutMs?: number;
  readonly streamTimeoutMs?: number;
  readonly changes?: Deps["changes"];
  readonly concurrency?: number;
  readonly queueMax?: number;
  /** The store, with something done to it. */
  readonly sessions?: (store: SessionStore) => SessionStore;
}

export async function setup() {
  const parts = new AsyncDisposableStack();
  const t = parts.use(await testDatabase({ schema: "gateway_bff", sets: [kernelMigrations, httpMigrations, own] }));
  const service = async (behaviour: Behaviour) => parts.use(await fakeService(behaviour));
  const services = {
    account: await service(answeringEach((userId) => userView(userId), { etag: '"1"' })),
    entitlement: await service(answeringEach(entitlementsOf)),
    notification: await service(answering({})),
    matchmaking: await service(answeringEach(() => ({ ticket_id: ticketId, status: "QUEUED" }))),
    points: await service(answeringEach(() => balanceView)),
    orders: await service(answering({})),
  };
  const settings = { idleMs: 60_000, absoluteMs: 3_600_000, perUserMax: 10, secrets: [randomBytes(32)] };
  const openStore = () => parts.use(postgresSessions(t.open(), settings));
  const store = openStore();
  const { tokenFor } = openSigner({ issuer: "gateway-bff", key: signingKey });

  const account = parts.use(openUpstream({ name: "account", url: services.account.url, tokenFor, timeoutMs: longMs }));

  /** Another process of the gateway: it shares nothing with the others but the database. */
  async function process(options: ProcessOptions = {}) {
    const { without = [], sessions: changed = (store) => store, ...rest } = options;
    const { profileTimeoutMs = longMs, streamTimeoutMs = longMs, changes, ...more } = rest;
    const at = (name: UpstreamName) => (without.includes(name) ? undefined : services[name].url);
    const urls = {
      account: services.account.url,
      entitlement: at("entitlement"),
      notification: at("notification"),
      matchmaking: at("matchmaking"),
      points: at("points"),
      orders: at("orders"),
    };
    const upstreams = parts.use(openUpstreams({ urls, tokenFor, timeoutMs: longMs, ...more }));
    const sessions = changed(openStore());
    const onError = () => {};
    const app = await buildHttpApp({ title: "gateway", version: "0", log: { level: "silent" }, openapi: false });
    parts.defer(async () => void (await app.close()));
    gatewayRoutes(app, {
      findEntries: async () => ({ entries: [], failed: [] }),
      authenticate: sessionGuard({ sessions, origin, isLoopback: true, onRefreshDue: () => {} }),
      db: t.db,
      sessions,
      upstreams,
      urls,
      tokenFor,
      profileTimeoutMs,
      streamTimeoutMs,
      ...(changes && { changes }),
      // These tests create sessions directly, without a login.
      provider: openProvider({ issuer: "http://127.0.0.1:1", clientId: "todoke", redirectUri: origin, onError }),
      resolveIdentity: resolveIdentity(upstreams.account),
      origin,
      isLoopback: true,
      nativeRedirects: [],
      reauthenticateMs: 900_000,
      limiter: localLimiter(postgresLimiter(t.open())),
      limits: readLimits(generous, []),
      limiterTimeoutMs: longMs,
      serveStaff: () => ({
        service: "gateway-bff",
        reads: t.db,
        deadLetters: [],
        overview: () => Promise.reject(new Error()),
        changes: async () => ({}),
        revokeServiceKey: () => Promise.reject(new Error()),
      }),
      onError,
    });
    return app;
  }

  /** A session of the user, as a native client has it: the headers that a request needs. */
  async function logIn(
    userId: string,
    more: Partial<UserSnapshot> & { roles?: readonly Role[]; status?: UserStatus } = {},
    /** When the user authenticated: now by default; null if the provider does not say. */
    { authenticatedAtMs }: { readonly authenticatedAtMs?: number | null } = {},
  ) {
    await store.saveUser({ userId, status: "ACTIVE", roles: ["USER"], version: 1, ...more });
    const tokens = { idToken: "id", accessToken: "access" };
    const who = { userId, client: "native", issuer: "http://127.0.0.1:1", subject: userId, tokens } as const;
    const authenticatedAt = authenticatedAtMs === undefined ? await store.clock() : authenticatedAtMs;
    const { token, sessionId } = await store.create({
      ...who,
      ...(authenticatedAt !== null && { authenticatedAtMs: authenticatedAt }),
    });
    return { sessionId, headers: { authorization: `Bearer ${token}` } };
  }

  return {
    ...t,
    services,
    account,
    process,
    logIn,
    sessions: store,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const generous = {
  GATEWAY_BFF_LIMIT_READ: "100000/60s",
  GATEWAY_BFF_LIMIT_WRITE: "100000/60s",
  GATEWAY_BFF_LIMIT_ADDRESS: "1000000/60s",
};

const entitlementsOf = (user_id: string) => ({
  user_id,
  entitlements: [{ stock_keeping_unit: "item1", status: "ACTIVE", version: 1, updated_at: "2026-01-08T07:10:00Z" }],
});
