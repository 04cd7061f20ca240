/** HSTS: a browser that was here once uses only TLS from then on. On every response, because a redirect may be the first. */
import type { FastifyInstance } from "fastify";

// A year. Not for subdomains: other services may run there.
const header = "max-age=31536000";

/** Only if players use https: a plain response must not have the header (RFC 6797, section 7.2). */
export function sendHsts(app: FastifyInstance): void {
  // onSend, because a request that is refused early, like one for an unknown path, passes no later hook.
  app.addHook("onSend", (_request, reply, payload, done) => {
    reply.header("strict-transport-security", header);
    done(null, payload);
  });
}
