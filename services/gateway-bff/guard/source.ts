/** Sets the address that log lines have: the same that the limits use, behind the configured number of proxies. */
import type { FastifyInstance } from "fastify";
import { clientAddress } from "../limits/address.ts";

export function setRequestSource(app: FastifyInstance, { trustedProxies }: { readonly trustedProxies: number }): void {
  app.sourceOf = ({ ip, headers }) =>
    clientAddress({ socketAddress: ip, forwardedFor: headers["x-forwarded-for"]?.toString(), trustedProxies });
}
