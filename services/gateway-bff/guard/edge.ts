/**
 * What a caller writes about who he is, and how he came, ends here: nothing behind the edge can read it by mistake.
 *
 * X-Forwarded-For is left, for limits/address.ts, which believes of it what our own proxies wrote and nothing else. That
 * none of these is sent on to a service does not depend on this: upstreams send headers of their own only.
 */
import type { FastifyInstance } from "fastify";

// With _ too: what reads headers as variables (CGI and its heirs) takes X_User_Id for X-User-Id.
const hearsay =
  /^(?:x[-_](?:user|internal|real[-_]ip|original|rewrite|http[-_]method|method[-_]override|forwarded(?![-_]for$))|forwarded)/;

export function dropHearsay(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    for (const name in request.raw.headers) if (hearsay.test(name)) delete request.raw.headers[name];
    done();
  });
}
