/** `todoke keys pair`: what the gateway signs its calls to services with, and what they check them with. */
import { formatSigningKey, formatVerifyingKey, newSigningKey, toVerifyingKey } from "@todoke/http";
import type { Call } from "../command.ts";
import { Misused } from "../faults.ts";
import { say } from "../output.ts";

export async function pair({ names: [name = "", ...more] }: Call): Promise<number> {
  if (!/^[a-z0-9-]{1,32}$/.test(name) || more.length > 0)
    throw new Misused("Give the pair a name of its own, as k2: a-z, 0-9 and -, at most 32 characters.");
  const key = newSigningKey(name);
  say(`The gateway signs with this. It is a secret, shown this once:

GATEWAY_BFF_TOKEN_KEY=${formatSigningKey(key)}

Every service checks with this. It is no secret:

TODOKE_TOKEN_KEYS=${formatVerifyingKey(toVerifyingKey("gateway-bff", key))}

To replace a pair that is in use, without a pause:

  1. Add the second line's entry to TODOKE_TOKEN_KEYS of every service, with a comma, and restart them: they take both.
  2. Set GATEWAY_BFF_TOKEN_KEY of every gateway to the first line, and restart them: they sign with the new one.
  3. A minute later no token of the old one lives. Take its entry out of TODOKE_TOKEN_KEYS, and restart the services.`);
  return 0;
}
