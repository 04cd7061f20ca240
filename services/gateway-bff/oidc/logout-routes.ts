/**
 * The two ends of a session that begin outside it: `POST /logout` by its user, and `POST /login/backchannel-logout` by the
 * identity provider, when the user has logged out there.
 *
 * A log-out here never waits for the provider, nor fails with it: the session is over when it is answered. The provider's
 * own session ends when the browser goes to `logout_url`.
 */
import { type HttpApp, ProblemView, problems, requires } from "@todoke/http";
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { sessionCookie } from "../guard/cookie.ts";
import { logSecurity } from "../security-log.ts";
import type { ProviderTokens } from "../sessions/index.ts";
import { loginMs } from "./binding-cookie.ts";
import { type OidcDeps, toEnd } from "./deps.ts";
import { nativeCodeMs } from "./native-code.ts";
import { logoutTokenRefused } from "./problems.ts";

export function logoutRoute(
  app: HttpApp,
  { authenticate, provider, sessions, origin, isLoopback, onError }: OidcDeps,
): void {
  const cookie = sessionCookie(isLoopback);
  const { config, ...guarded } = requires(authenticate, { user: "any" });

  const later = (what: string) => (cause: unknown) => onError(new Error(what, { cause }));
  const revoke = (tokens: ProviderTokens): void =>
    void provider.revoke(tokens).catch(later("revoking the tokens of a session that was logged out failed"));

  app.post(
    "/logout",
    {
      ...guarded,
      config: { ...config, inactiveToo: true },
      schema: {
        operationId: "logOut",
        summary: "Ends this session",
        response: {
          200: Type.Object({
            logout_url: Type.Optional(
              Type.String({ description: "Where a browser ends its session at the provider too" }),
            ),
          }),
          401: ProblemView,
        },
      },
    },
    async (request, reply) => {
      const { session } = request;
      if (!session) throw new Error("the guard let somebody in without a session");
      const { sessionId, userId, client } = session;
      const tokens = await sessions.tokensOf(sessionId);
      await sessions.end(userId, sessionId);
      logSecurity(request, "logged out", { session_id: sessionId });
      if (client === "browser") cookie.clear(reply);
      if (tokens) revoke(tokens);
      const logoutUrl = await provider
        .logoutUrl(`${origin}/`)
        .catch(later("where to log out at the provider is not known"));
      return { ...(logoutUrl && { logout_url: logoutUrl }) };
    },
  );
}

const logoutTokenMax = 16 * 1024;

// Longer than a log-in takes up to its session, a native client's code included: a log-in that is ended meanwhile opens no
// session. It is also longer than a log-out token is valid (proof.ts), so that none counts twice.
const rememberMs = loginMs + nativeCodeMs + 4 * 60_000;

// Everybody may send tokens, and each costs the check of a signature, about as much as the request itself. What is past
// this is refused before its signature is looked at: a flood holds at most this many bodies of 16 KiB.
const checkingMax = 1_000;

/**
 * A token is authenticated before anything is counted: strangers cannot use up what the provider may send. A genuine one
 * counts by its issuer; what proves nothing counts as any write of its address does (limits/hook.ts).
 *
 * The sessions end, the log-out is remembered and the token's id is recorded in one step: after a crash or an error the
 * provider may send the same token again.
 */
export function backchannelLogoutRoute(app: HttpApp, { provider, sessions, countLogout }: OidcDeps): void {
  let checking = 0;

  async function authenticate(logoutToken: string) {
    if (checking >= checkingMax)
      throw problems.unavailable("too many log-outs at once; try again", { retryAfterSeconds: 1 });
    checking++;
    try {
      return await provider.ended(logoutToken);
    } finally {
      checking--;
    }
  }

  app.register(async (form) => {
    takeForms(form);
    form.post(
      "/login/backchannel-logout",
      {
        config: { ...toEnd.config, countedByRoute: true },
        bodyLimit: logoutTokenMax,
        schema: {
          operationId: "endByProvider",
          summary: "For the identity provider: somebody has logged out there (OpenID Connect Back-Channel Logout)",
          consumes: ["application/x-www-form-urlencoded"],
          body: Type.Object({ logout_token: Type.String() }, { additionalProperties: true }),
          response: { 200: Type.Null(), 400: ProblemView, 429: ProblemView, 503: ProblemView },
        },
      },
      async (request, reply) => {
        const { logout_token } = request.body as { logout_token: string };
        const { jti: tokenId, ...logout } = await authenticate(logout_token);
        await countLogout(request, reply, logout.issuer);
        const ended = await sessions.endByProvider({ ...logout, tokenId, rememberMs });
        if (ended === undefined) throw logoutTokenRefused("it was taken before");
        logSecurity(request, "logged out by the provider", { ended });
        return reply.code(200).send();
      },
    );
  });
}

/** As the standard has it; a field that comes twice is a list, which no schema here takes for a text. */
function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) => {
    const fields = new URLSearchParams(String(body));
    const each = [...new Set(fields.keys())].map((name) => [name, fields.getAll(name)] as const);
    done(null, Object.fromEntries(each.map(([name, values]) => [name, values.length > 1 ? values : values[0]])));
  });
}
