/** Login by OpenID Connect. No token of the provider reaches a client. */
import { named } from "@todoke/contracts/api";
import type { HttpApp } from "@todoke/http";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { fetchSessionToken } from "../commands/fetch-session-token.ts";
import { finishLogIn } from "../commands/finish-log-in.ts";
import { logIn } from "../commands/log-in.ts";
import type { Deps } from "../deps.ts";
import { sessionCookie } from "../guard/cookie.ts";
import { sendLanding } from "../guard/landing.ts";
import { logLogin, logSecurity } from "../guard/security-log.ts";
import { bindingCookie } from "../oidc/binding-cookie.ts";
import { parseNativeClient } from "../oidc/native-client.ts";
import { problemsAsPages, wantsPage } from "../oidc/problem-page.ts";
import { safeReturnPath } from "../oidc/return-path.ts";
import {
  accountInactive,
  identityNotProven,
  identityProviderUnavailable,
  loginNotPending,
  loginRefused,
  nativeCodeRefused,
  nativeLoginInvalid,
  upstreamProblems,
} from "../problems.ts";

export type LoginDeps = Pick<
  Deps,
  | "provider"
  | "sessions"
  | "resolveIdentity"
  | "origin"
  | "isLoopback"
  | "nativeRedirects"
  | "reauthenticateMs"
  | "onError"
>;

const LoginQuery = Type.Object({
  returnTo: Type.Optional(Type.String({ description: "The path of ours to return to; any other value becomes `/`." })),
  client: Type.Optional(
    Type.Literal("native", { description: "For programs: the login ends with a code for POST /login/token." }),
  ),
  redirect_uri: Type.Optional(
    Type.String({ description: "Native clients: a port of the player's machine, or a configured address." }),
  ),
  code_challenge: Type.Optional(
    Type.String({ pattern: "^[\\w-]{43}$", description: "Native clients: SHA-256 of the verifier, in base64url." }),
  ),
  state: Type.Optional(Type.String({ maxLength: 512, description: "Native clients: returned unchanged." })),
  reauthenticate: Type.Optional(
    Type.Literal("yes", { description: "The provider asks for credentials even if it knows the user." }),
  ),
});

// A provider may add parameters to its response; openid-client reads the required ones.
const CallbackQuery = Type.Object(
  { state: Type.String({ maxLength: 512, description: "As the login sent it to the provider." }) },
  { additionalProperties: true },
);

const TokenBody = named("FetchSessionTokenRequest", {
  code: Type.String({ minLength: 1, maxLength: 128, description: "The code with which the login ended." }),
  code_verifier: Type.String({ pattern: "^[A-Za-z0-9._~-]{43,128}$", description: "RFC 7636, section 4.1." }),
});

const TokenView = named("SessionToken", {
  session_token: Type.String({ description: "Send it as Authorization: Bearer. It is returned only once." }),
  token_type: Type.Literal("Bearer"),
  expires_at: Type.String({
    format: "date-time",
    description: "The end of the session by age; an unused session ends sooner.",
  }),
});

const redirectTo = (description: string) =>
  Type.Null({ description, headers: { location: { type: "string", description: "The address." } } });

const LandingPage = Type.Unsafe<string>({
  title: "LandingPage",
  type: "string",
  description: "For browsers: a page that continues at `returnTo` by itself.",
});

/**
 * A page of another site can send a browser here, and a provider that knows the user would respond without asking: the code
 * would go to any program that listens at that port of the user's machine. A program that opens the browser sends `none`.
 * If the browser sends nothing, the provider asks for credentials.
 */
const isStartedByUser = ({ headers }: FastifyRequest): boolean =>
  headers["sec-fetch-site"] === "none" || headers["sec-fetch-site"] === "same-origin";

// Pages for browsers. A HEAD must neither start a login nor use one up.
const forBrowsers = { ...problemsAsPages, exposeHeadRoute: false };
const starts = { config: { rule: { isPublic: true }, limit: "login" } } as const;
// A login counts once, at its start; its state and code cannot be guessed.
const finishes = { config: { rule: { isPublic: true }, limit: "write" } } as const;

export function loginRoutes(app: HttpApp, deps: LoginDeps): void {
  const { sessions, origin, isLoopback, nativeRedirects } = deps;
  const binding = bindingCookie(isLoopback);
  const cookie = sessionCookie(isLoopback);

  function sessionToken(request: FastifyRequest): string | undefined {
    const [token, ...more] = cookie.valuesIn(request);
    return more.length === 0 ? token : undefined;
  }

  app.get(
    "/login",
    {
      ...starts,
      ...forBrowsers,
      schema: {
        operationId: "logIn",
        summary: "Log in",
        tags: ["Sessions"],
        description: "Redirects the browser to the identity provider.",
        querystring: LoginQuery,
        refusals: [identityProviderUnavailable, nativeLoginInvalid],
        response: { 303: redirectTo("The login continues at the provider.") },
      },
    },
    async (request, reply) => {
      const { query } = request;
      const url = await logIn(deps, {
        returnTo: safeReturnPath(query.returnTo, origin),
        native: parseNativeClient(query, nativeRedirects),
        reauthenticate: query.reauthenticate !== undefined,
        isStartedByUser: isStartedByUser(request),
        sessionToken: sessionToken(request),
        bind: () => binding.bind(request, reply),
      });
      return reply.redirect(url, 303);
    },
  );

  app.get(
    "/login/callback",
    {
      ...finishes,
      ...forBrowsers,
      schema: {
        operationId: "finishLogIn",
        summary: "Finish a login",
        tags: ["Sessions"],
        description: "The identity provider redirects the browser here.",
        querystring: CallbackQuery,
        produces: ["text/html"],
        refusals: [
          identityNotProven,
          identityProviderUnavailable,
          loginNotPending,
          loginRefused,
          accountInactive,
          ...Object.values(upstreamProblems.account),
        ],
        response: {
          200: LandingPage,
          303: redirectTo("For programs: continue at `returnTo` or at `redirect_uri`."),
        },
      },
    },
    async (request, reply) => {
      const finished = await finishLogIn(deps, {
        state: request.query.state,
        query: new URL(request.raw.url ?? "/", origin).searchParams,
        userAgent: request.headers["user-agent"],
        sessionToken: sessionToken(request),
        isBound: (hash) => binding.isBound(request, hash),
      });
      if (finished.kind === "native") {
        // Logged here, because the log of requests sees only a redirect.
        if (finished.failure) logSecurity(request, "login refused", { code: finished.failure });
        return reply.redirect(finished.redirectUrl, 303);
      }
      logLogin(request, finished.session);
      cookie.set(reply, finished.token);
      return wantsPage(request) ? sendLanding(reply, finished.returnTo) : reply.redirect(finished.returnTo, 303);
    },
  );

  app.post(
    "/login/token",
    {
      ...finishes,
      schema: {
        operationId: "fetchSessionToken",
        summary: "Fetch a session token",
        tags: ["Sessions"],
        description: "Exchanges the code of a native client's login for a session token. Sets no cookie.",
        body: TokenBody,
        refusals: [nativeCodeRefused],
        response: { 200: TokenView },
      },
    },
    async (request) => {
      const { code, code_verifier: verifier } = request.body;
      const { token, endsAt, session } = await fetchSessionToken(sessions, { code, verifier });
      logLogin(request, session);
      return { session_token: token, token_type: "Bearer" as const, expires_at: endsAt };
    },
  );
}
