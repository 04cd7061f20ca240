/**
 * The harness of the login tests: the login and logout routes with sessions in a test database and any provider, and a
 * browser that keeps its cookies. Responses and log lines are recorded, so that tests can search them for secrets.
 */
import { randomBytes } from "node:crypto";
import { buildHttpApp, requires } from "@todoke/http";
import { kernelMigrations } from "@todoke/kernel/migrations";
import type { Problem } from "@todoke/kernel/problem";
import { testDatabase } from "@todoke/kernel/testing";
import type { InjectOptions } from "fastify";
import { expect } from "vitest";
import { decorateSession, sessionGuard } from "../../guard/session-guard.ts";
import { loginRoutes } from "../../routes/login.ts";
import { logoutRoutes } from "../../routes/logout.ts";
import type { Session, SessionStore, UserSnapshot } from "../../sessions/index.ts";
import { postgresSessions } from "../../sessions/postgres.ts";
import type { Identity } from "../identity.ts";
import { openProvider } from "../provider.ts";
import { clientId, clientSecret } from "./lying-provider.ts";

const own = { name: "gateway-bff", dir: new URL("../../migrations/", import.meta.url) };

export interface GatewayOptions {
  readonly issuer: string;
  readonly client?: { readonly clientId: string; readonly clientSecret?: string };
  readonly origin?: string;
  readonly nativeRedirects?: readonly string[];
  readonly onRefreshDue?: (session: Session) => void;
  /** The clock by which the provider is left alone after a failure, and its keys are looked for again. */
  readonly now?: () => number;
  /** Wraps the default store. */
  readonly around?: (sessions: SessionStore) => SessionStore;
}

export type Answer = Awaited<ReturnType<Awaited<ReturnType<typeof buildHttpApp>>["inject"]>>;

export async function startGateway(options: GatewayOptions) {
  const {
    issuer,
    client = { clientId, clientSecret },
    origin = "https://play.example",
    nativeRedirects = [],
    now = () => performance.now(),
  } = options;
  await using started = new AsyncDisposableStack();
  const t = started.use(await testDatabase({ schema: "gateway_bff", sets: [kernelMigrations, own] }));
  const settings = { idleMs: 1_800_000, absoluteMs: 43_200_000, perUserMax: 10, secrets: [randomBytes(32)] };
  const store = started.use(postgresSessions(t.db, settings));
  const sessions = options.around?.(store) ?? store;
  const logged: string[] = [];
  const answered: string[] = [];
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const isLoopback = origin.startsWith("http:");
  const provider = openProvider({ issuer, ...client, redirectUri: `${origin}/login/callback`, now, onError });
  const account = knownAccounts();

  async function process() {
    const app = await buildHttpApp({
      title: "gateway",
      version: "0",
      log: { stream: { write: (line) => void logged.push(line) } },
    });
    started.defer(() => app.close().then(() => undefined));
    decorateSession(app);
    const { onRefreshDue = () => undefined } = options;
    const authenticate = sessionGuard({ sessions, origin, isLoopback, onRefreshDue });
    const deps = {
      provider,
      sessions,
      resolveIdentity: account.resolve,
      authenticate,
      origin,
      isLoopback,
      nativeRedirects,
      reauthenticateMs: 900_000,
      countLogout: async () => undefined,
      onError,
    };
    loginRoutes(app, deps);
    logoutRoutes(app, deps);
    app.get("/whoami", { ...requires(authenticate, { user: "any" }), schema: { hide: true } }, async ({ caller }) => ({
      caller,
    }));
    return app;
  }
  const app = await process();

  async function inject(request: InjectOptions & { readonly url: string }): Promise<Answer> {
    const answer = await app.inject(request);
    answered.push(JSON.stringify(answer.headers), answer.body);
    return answer;
  }

  const count = async (table: string) => Number((await t.db.query(`select count(*) from ${table}`)).rows[0].count);
  const resources = started.move();
  return {
    db: t.db,
    origin,
    sessions,
    provider,
    account,
    errors,
    logged,
    answered,
    inject,
    browser: (headers: Record<string, string> = {}) => openBrowser({ inject, origin, headers }),
    rows: async () => ({ sessions: await count("sessions"), underWay: await count("one_time") }),
    /** Fails when any of these was answered to anybody, or logged. */
    expectUnseen(secrets: readonly string[]) {
      expect(secrets.length).toBeGreaterThan(0);
      const seen = [...answered, ...logged, ...errors.map((error) => describe(error))].join("\n");
      for (const secret of secrets) expect(seen).not.toContain(secret);
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** An error with all that hangs on it, as a log that shows everything would have it. */
const describe = (error: unknown): string =>
  error instanceof Error
    ? `${error.stack} ${JSON.stringify(Object.entries(error))} ${describe(error.cause)}`
    : (JSON.stringify(error) ?? "");

/** The far side of account: one user for each identity, made known by what it was asked. */
function knownAccounts() {
  const asked: Identity[] = [];
  const changes = new Map<string, Partial<UserSnapshot>>();
  let failure: Problem | undefined;
  return {
    asked,
    /** Changes the user of a subject from now on. */
    say: (subject: string, change: Partial<UserSnapshot>) => void changes.set(subject, change),
    fail: (problem: Problem | undefined) => {
      failure = problem;
    },
    resolve: async (identity: Identity): Promise<UserSnapshot> => {
      asked.push(identity);
      if (failure) throw failure;
      const { subject } = identity;
      return { userId: `user-${subject}`, status: "ACTIVE", roles: ["USER"], version: 1, ...changes.get(subject) };
    },
  };
}

interface BrowserOptions {
  readonly inject: (request: InjectOptions & { readonly url: string }) => Promise<Answer>;
  readonly origin: string;
  readonly headers: Record<string, string>;
}

/** As much of a browser as the gateway sees. */
function openBrowser({ inject, origin, headers }: BrowserOptions) {
  const cookies = new Map<string, string>();

  async function ask(request: InjectOptions & { readonly url: string }): Promise<Answer> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await inject({ ...request, headers: { ...(cookie && { cookie }), ...headers, ...request.headers } });
    for (const set of [answer.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (/max-age=0/i.test(set)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return answer;
  }

  return {
    cookies,
    ask,
    get: (url: string) => ask({ url }),
    /** As a page of ours sends it. */
    post: (url: string, payload?: object) =>
      ask({ method: "POST", url, headers: { origin, "x-todoke-request": "1" }, ...(payload && { payload }) }),
    whoami: async () => (await ask({ url: "/whoami" })).json(),
    /** From /login to the provider, who answers at once, up to our callback, which is not called yet. */
    async toCallback(query = ""): Promise<string> {
      const begun = await ask({ url: `/login${query}` });
      expect(begun.statusCode, begun.body).toBe(303);
      const { status, headers: back } = await fetch(String(begun.headers.location), { redirect: "manual" });
      expect(status).toBe(302);
      const { pathname, search } = new URL(back.get("location") ?? "");
      return pathname + search;
    },
    async logIn(query = ""): Promise<Answer> {
      return ask({ url: await this.toCallback(query) });
    },
  };
}

export type Browser = ReturnType<typeof openBrowser>;
