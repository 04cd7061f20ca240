/** Where requests come from, for the log: as the limits see it, behind as many proxies of ours as the settings say. */
import type { FastifyInstance } from "fastify";
import { addressOf } from "../limits/address.ts";

export function knowSources(app: FastifyInstance, { trustedProxies }: { readonly trustedProxies: number }): void {
  app.sourceOf = ({ ip, headers }) =>
    addressOf({ socketAddress: ip, forwardedFor: headers["x-forwarded-for"]?.toString(), trustedProxies });
}
