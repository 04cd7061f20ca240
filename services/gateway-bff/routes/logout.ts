/** Logout by the user, and back-channel logout by the identity provider. */
import { named } from "@todoke/contracts/api";
import { type HttpApp, requires } from "@todoke/http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { endByProvider } from "../commands/end-by-provider.ts";
import { logOut } from "../commands/log-out.ts";
import type { Deps } from "../deps.ts";
import { sessionCookie } from "../guard/cookie.ts";
import { logSecurity } from "../guard/security-log.ts";
import { csrfRefused, identityProviderUnavailable, logoutTokenRefused } from "../problems.ts";

export interface LogoutDeps
  extends Pick<Deps, "authenticate" | "provider" | "sessions" | "origin" | "isLoopback" | "onError"> {
  /** Counts an authenticated back-channel logout by its issuer; throws if the issuer is over its limit. */
  readonly countLogout: (request: FastifyRequest, reply: FastifyReply, issuer: string) => Promise<void>;
}

const logoutTokenMax = 16 * 1024;

const LogoutView = named("LoggedOut", {
  logout_url: Type.Optional(Type.String({ description: "Where a browser ends its session at the provider too." })),
});
const BackchannelBody = Type.Object(
  { logout_token: Type.String({ description: "A logout token, signed by the provider." }) },
  { title: "BackchannelLogoutRequest", additionalProperties: true },
);

export function logoutRoutes(app: HttpApp, deps: LogoutDeps): void {
  const cookie = sessionCookie(deps.isLoopback);
  const { config, ...guarded } = requires(deps.authenticate, { user: "any" });
  const endSessions = endByProvider(deps);

  app.post(
    "/logout",
    {
      ...guarded,
      config: { ...config, inactiveToo: true },
      schema: {
        operationId: "logOut",
        summary: "Log out",
        tags: ["Sessions"],
        description: "Ends the session of the request.",
        refusals: [csrfRefused],
        response: {
          200: LogoutView,
        },
      },
    },
    async (request, reply) => {
      const { session } = request;
      if (!session) throw new Error("the guard let a request pass without a session");
      const logoutUrl = await logOut(deps, session);
      logSecurity(request, "logged out", { session_id: session.sessionId });
      if (session.client === "browser") cookie.clear(reply);
      return { ...(logoutUrl && { logout_url: logoutUrl }) };
    },
  );

  app.register(async (form) => {
    parseForms(form);
    form.post(
      "/login/backchannel-logout",
      {
        // A token that is not valid counts as a write of its address (limits/hook.ts).
        config: { rule: { isPublic: true }, limit: "write", countedByRoute: true },
        bodyLimit: logoutTokenMax,
        schema: {
          operationId: "endByProvider",
          summary: "End sessions by the provider",
          tags: ["Sessions"],
          description: "Ends sessions after a logout at the identity provider (OpenID Connect Back-Channel Logout).",
          consumes: ["application/x-www-form-urlencoded"],
          body: BackchannelBody,
          refusals: [identityProviderUnavailable, logoutTokenRefused],
          response: { 200: Type.Null() },
        },
      },
      async (request, reply) => {
        const { logout_token } = request.body as { logout_token: string };
        const ended = await endSessions(logout_token, (issuer) => deps.countLogout(request, reply, issuer));
        logSecurity(request, "logged out by the provider", { ended });
        return reply.code(200).send();
      },
    );
  });
}

/** A field that occurs twice becomes a list, which fails the schema. */
function parseForms(app: FastifyInstance): void {
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) => {
    const fields = new URLSearchParams(String(body));
    const each = [...new Set(fields.keys())].map((name) => [name, fields.getAll(name)] as const);
    done(null, Object.fromEntries(each.map(([name, values]) => [name, values.length > 1 ? values : values[0]])));
  });
}
