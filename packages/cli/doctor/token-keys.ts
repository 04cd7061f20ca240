/** Whether services will believe the gateway: what it signs with must be known to those who check. */
import type { Env } from "../services.ts";
import { about, type Finding } from "./finding.ts";

export async function checkTokenKeys(env: Env): Promise<Finding[]> {
  const { ok, warning, fault } = about("tokens");
  const { GATEWAY_BFF_TOKEN_KEY: signing, TODOKE_TOKEN_KEYS: verifying } = env;
  if (!signing && !verifying) return [ok("no keys given; `todoke dev` makes its own")];
  // Loaded here, because it brings a web framework along that `todoke help` can do without.
  const { toVerifyingKey, readSigningKey, readVerifyingKeys, formatVerifyingKey } = await import("@todoke/http");
  const faults: string[] = [];
  const known = readVerifyingKeys(env, faults);
  const key = signing ? readSigningKey(env, "GATEWAY_BFF_TOKEN_KEY", faults) : undefined;
  if (faults.length > 0) return faults.map((says) => fault(says, "Make a pair with `todoke keys pair`."));
  if (!key) return [ok(`taken from ${known.map(({ id }) => id).join(", ")}`)];
  const own = formatVerifyingKey(toVerifyingKey("gateway-bff", key));
  if (known.some((each) => formatVerifyingKey(each) === own))
    return [ok(`signed by gateway-bff.${key.name}, and taken`)];
  const todo = `Add ${own} to TODOKE_TOKEN_KEYS of every service.`;
  if (!verifying) return [warning("TODOKE_TOKEN_KEYS is not set here: services cannot know the gateway by it", todo)];
  return [fault(`gateway-bff.${key.name} is not among TODOKE_TOKEN_KEYS: services will refuse the gateway`, todo)];
}
