/** Finds the user of an identity in account, which creates the user at the first login. Idempotent, so it is retried. */
import type { ResolveIdentity } from "../oidc/identity.ts";
import type { Upstream } from "../upstreams/index.ts";
import { parseUser } from "../upstreams/user-view.ts";

export function resolveIdentity(account: Upstream): ResolveIdentity {
  return async (identity) => {
    const body = JSON.stringify(identity);
    const { value } = await account.call({ method: "POST", path: "/identities:resolve", body, repeatable: true });
    return parseUser(value);
  };
}
