/**
 * Who somebody is here, by who they are at the identity provider: account makes the user at first sight and finds it ever
 * after. Asked twice it answers the same, so a call that broke off is tried again.
 */
import type { ResolveIdentity } from "../oidc/index.ts";
import type { Upstream } from "../upstreams/index.ts";
import { knownUserOf } from "./known-user.ts";

export function resolveIdentity(account: Upstream): ResolveIdentity {
  return async (identity) => {
    const body = JSON.stringify(identity);
    const { value } = await account.call({ method: "POST", path: "/identities:resolve", body, repeatable: true });
    return knownUserOf(value);
  };
}
