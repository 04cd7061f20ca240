/**
 * Removes identity and routing headers that a client sent, so that no code behind this hook can trust them by mistake.
 *
 * X-Forwarded-For stays for limits/address.ts, which trusts only the entries of our own proxies. Services never receive
 * client headers in any case: upstreams/client.ts sends its own.
 */
import type { FastifyInstance } from "fastify";

// With _ too: CGI and its successors read X_User_Id as X-User-Id.
const identityHeaders =
  /^(?:x[-_](?:user|internal|real[-_]ip|original|rewrite|http[-_]method|method[-_]override|forwarded(?![-_]for$))|forwarded)/;

export function stripIdentityHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    for (const name in request.raw.headers) if (identityHeaders.test(name)) delete request.raw.headers[name];
    done();
  });
}
