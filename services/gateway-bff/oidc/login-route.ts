/** `GET /login` begins a log-in: it keeps on the server what must be remembered, and sends the browser to the provider. */
import { type HttpApp, ProblemView } from "@todoke/http";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { sessionCookie } from "../guard/cookie.ts";
import { bindingCookie, loginMs } from "./binding-cookie.ts";
import { forBrowsers, type OidcDeps, toBegin } from "./deps.ts";
import { nativeClientOf } from "./native-client.ts";
import { ownPath } from "./return-to.ts";
import { sessionIn, tellRefused, type UnderWay } from "./under-way.ts";

const LoginQuery = Type.Object({
  returnTo: Type.Optional(
    Type.String({ description: "A path of ours to go to in the end; anything else becomes `/`" }),
  ),
  client: Type.Optional(
    Type.Literal("native", { description: "For programs: it ends in a code for POST /login/token" }),
  ),
  redirect_uri: Type.Optional(
    Type.String({ description: "native: a port of the player's machine, or a known address" }),
  ),
  code_challenge: Type.Optional(Type.String({ pattern: "^[\\w-]{43}$", description: "native: SHA-256, base64url" })),
  state: Type.Optional(Type.String({ maxLength: 512, description: "native: comes back as it is" })),
  reauthenticate: Type.Optional(
    Type.Literal("yes", { description: "The provider asks who it is, though it knows; for what needs a fresh log-in" }),
  ),
});

/**
 * A page of another site can send a browser here, and a provider that knows the user would answer without a question: the
 * code would go to whatever program listens at that port of the user's machine. A program that opens the browser itself
 * sends `none`. Browsers that do not say where a request comes from are asked to log in.
 */
const isBegunByUser = ({ headers }: FastifyRequest): boolean =>
  headers["sec-fetch-site"] === "none" || headers["sec-fetch-site"] === "same-origin";

export function loginRoute(app: HttpApp, deps: OidcDeps): void {
  const { provider, sessions, origin, isLoopback, nativeRedirects, reauthenticateMs } = deps;
  const binding = bindingCookie(isLoopback);
  const cookie = sessionCookie(isLoopback);
  app.get(
    "/login",
    {
      ...toBegin,
      ...forBrowsers,
      schema: {
        operationId: "logIn",
        summary: "Log in: sends the browser to the identity provider",
        querystring: LoginQuery,
        response: { 400: ProblemView, 503: ProblemView },
      },
    },
    async (request, reply) => {
      const native = nativeClientOf(request.query, nativeRedirects);
      const previous = native ? undefined : await sessionIn(request, { cookie, sessions });
      const reauthenticate = request.query.reauthenticate !== undefined;
      const { url, state, ...checks } = await provider
        .begin({
          ...(reauthenticate && reauthenticateMs > 0 && { maxAgeSeconds: Math.ceil(reauthenticateMs / 1_000) }),
          interactive: reauthenticate || (native !== undefined && !isBegunByUser(request)),
        })
        .catch(tellRefused);
      const underWay: UnderWay = {
        ...checks,
        begunAtMs: await sessions.clock(),
        binding: binding.bind(request, reply),
        returnTo: ownPath(request.query.returnTo, origin),
        ...(previous && { previous }),
        ...(native && { native }),
      };
      await sessions.put("login", state, underWay, loginMs);
      return reply.redirect(url, 303);
    },
  );
}
