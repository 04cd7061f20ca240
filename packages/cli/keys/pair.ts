/** `todoke keys pair`: creates the key that signs the calls of the gateway, and the key that services verify them with. */
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import type { Invocation } from "../command.ts";
import { UsageError } from "../errors.ts";
import { print } from "../output.ts";

export async function pair({ args: [name = "", ...more] }: Invocation): Promise<number> {
  if (!/^[a-z0-9-]{1,32}$/.test(name) || more.length > 0)
    throw new UsageError("Name the pair, for example k2: a-z, 0-9 and -, at most 32 characters.");
  const key = newSigningKey(name);
  print(`The gateway signs with this key. It is a secret and is printed only once:

GATEWAY_BFF_TOKEN_KEY=${formatSigningKey(key)}

Every service verifies with this key. It is not a secret:

TODOKE_TOKEN_KEYS=${formatVerifyingKey(toVerifyingKey("gateway-bff", key))}

To replace a pair without downtime:

  1. Append the second value to TODOKE_TOKEN_KEYS of every service, after a comma, and restart them: they accept both.
  2. Set GATEWAY_BFF_TOKEN_KEY of every gateway to the first value, and restart them: they sign with the new key.
  3. After a minute all tokens of the old key have expired. Remove its entry from TODOKE_TOKEN_KEYS and restart the services.`);
  return 0;
}
