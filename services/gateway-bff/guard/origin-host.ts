/**
 * Sends a browser at http://127.0.0.1:8080 to http://localhost:8080 if that is the origin. Cookies belong to one host name, so a
 * login that starts under the other name cannot end.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isLoopback } from "../config.ts";
import { wantsPage } from "../oidc/problem-page.ts";

/** Only for an origin on loopback. Elsewhere a host name that is not ours is rejected. */
export function redirectToOrigin(app: FastifyInstance, origin: string): void {
  const ours = new URL(origin);
  const isOtherName = ({ headers }: FastifyRequest) => {
    const asked = URL.parse(`${ours.protocol}//${headers.host}`);
    return asked !== null && isLoopback(asked) && asked.port === ours.port && asked.hostname !== ours.hostname;
  };
  app.addHook("onRequest", async (request, reply) => {
    if (request.method === "GET" && wantsPage(request) && isOtherName(request))
      return reply.redirect(`${ours.origin}${request.url}`, 307);
  });
}
