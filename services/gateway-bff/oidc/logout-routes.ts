/**
 * The two ends of a session that begin outside it: `POST /logout` by its user, and `POST /login/backchannel-logout` by the
 * identity provider, when the user has logged out there.
 *
 * A log-out here never waits for the provider, nor fails with it: the session is over when it is answered. The provider's
 * own session ends when the browser goes to `logout_url`.
 */
import { type HttpApp, ProblemView, requires } from "@todoke/http";
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { sessionCookie } from "../guard/cookie.ts";
import type { ProviderTokens } from "../sessions/index.ts";
import { type OidcDeps, toEnd } from "./deps.ts";
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
    async ({ session }, reply) => {
      if (!session) throw new Error("the guard let somebody in without a session");
      const { sessionId, userId, client } = session;
      const tokens = await sessions.tokensOf(sessionId);
      await sessions.end(userId, sessionId);
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

// Longer than a log-out token is taken at all (proof.ts): one that was taken is not taken again.
const rememberMs = 15 * 60_000;

export function backchannelLogoutRoute(app: HttpApp, { provider, sessions }: OidcDeps): void {
  app.register(async (form) => {
    takeForms(form);
    form.post(
      "/login/backchannel-logout",
      {
        ...toEnd,
        bodyLimit: logoutTokenMax,
        schema: {
          operationId: "endByProvider",
          summary: "For the identity provider: somebody has logged out there (OpenID Connect Back-Channel Logout)",
          consumes: ["application/x-www-form-urlencoded"],
          body: Type.Object({ logout_token: Type.String() }, { additionalProperties: true }),
          response: { 200: Type.Null(), 400: ProblemView, 503: ProblemView },
        },
      },
      async ({ body }, reply) => {
        const { jti, ...ended } = await provider.ended((body as { logout_token: string }).logout_token);
        if (!(await sessions.put("logout", jti, true, rememberMs))) throw logoutTokenRefused("it was taken before");
        try {
          await sessions.endByProvider(ended);
        } catch (error) {
          // It has not been heard yet: the provider may say it again.
          await sessions.take("logout", jti);
          throw error;
        }
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
