/** Checks whether services accept calls of the gateway: they must know the key that it signs with. */
import type { Env } from "../services.ts";
import { type Finding, findingsFor } from "./finding.ts";

export async function checkTokenKeys(env: Env): Promise<Finding[]> {
  const { ok, warning, fault } = findingsFor("tokens");
  const { GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: verifying } = env;
  if (!signing && !verifying) return [ok("no keys set; `todoke dev` creates its own")];
  // Imported here because it loads a web framework, which `todoke help` does not need.
  const { toVerifyingKey, readSigningKey, readVerifyingKeys, formatVerifyingKey } = await import("@todoke/http");
  const errors: string[] = [];
  const known = readVerifyingKeys(env, errors);
  const key = signing ? readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", errors) : undefined;
  if (errors.length > 0) return errors.map((says) => fault(says, "Create a pair with `todoke keys pair`."));
  if (!key) return [ok(`services accept ${known.map(({ id }) => id).join(", ")}`)];
  const own = formatVerifyingKey(toVerifyingKey("gateway-bff", key));
  if (known.some((each) => formatVerifyingKey(each) === own))
    return [ok(`the gateway signs with gateway-bff.${key.name}, and services accept it`)];
  const todo = `Add ${own} to TODOKE_TOKEN_KEYS of every service.`;
  if (!verifying)
    return [warning("TODOKE_TOKEN_KEYS is not set here: services cannot verify calls of the gateway", todo)];
  return [fault(`gateway-bff.${key.name} is not in TODOKE_TOKEN_KEYS: services reject calls of the gateway`, todo)];
}
