/** HSTS: a browser that was here once never asks without TLS again. For every answer, as a redirect may be the first. */
import type { FastifyInstance } from "fastify";

// A year. Not for subdomains: what else runs under this name is not ours to decide.
const header = "max-age=31536000";

/** Only where players come by https: what is sent in the clear must not say it (RFC 6797, section 7.2). */
export function demandTls(app: FastifyInstance): void {
  // Not on the way in: what is refused there, as an unknown path is, passes no further hook.
  app.addHook("onSend", (_request, reply, payload, done) => {
    reply.header("strict-transport-security", header);
    done(null, payload);
  });
}
