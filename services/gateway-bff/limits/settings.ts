/** What each kind of call may be made how often: the settings, a policy for each, and what they are where nothing is said. */
import { type Env, integerReader } from "@todoke/service";
import type { Policy } from "./index.ts";

/** What a call costs its caller: of which quota it takes. */
export type LimitClass = "login" | "logout" | "read" | "write" | "bulk";

export interface Limits {
  /** Of each user; of each address where nobody is logged in. */
  readonly classes: Readonly<Record<LimitClass, Policy>>;
  /** Of each address, over all that comes from there: many players may share one. */
  readonly address: Policy;
  readonly trustedProxies: number;
  /** Requests of one address that may be in flight in one process. */
  readonly inFlightMax: number;
}

export function readLimits(env: Env, faults: string[]): Limits {
  const policy = (name: string, usual: string) => readPolicy(name, usual, { env, faults });
  return {
    classes: {
      login: policy("login", "20/60s"),
      // Of each identity provider. A third of it at once: everybody who plays is logged out there in one go.
      logout: policy("logout", "60000/60s"),
      read: policy("read", "600/60s"),
      write: policy("write", "120/60s"),
      bulk: policy("bulk", "30/60s"),
    },
    address: policy("address", "6000/60s"),
    trustedProxies: integerReader(env, faults)("GATEWAY_BFF_TRUSTED_PROXIES", 0, [0, 16]),
    inFlightMax: integerReader(env, faults)("GATEWAY_BFF_LIMIT_IN_FLIGHT", 500, [1, 100_000]),
  };
}

const quotaMax = 1_000_000;
const windowMaxSeconds = 3_600;

function readPolicy(name: string, usual: string, { env, faults }: { env: Env; faults: string[] }): Policy {
  const variable = `GATEWAY_BFF_LIMIT_${name.toUpperCase()}`;
  const read = (text: string): Policy | undefined => {
    const [, quota = 0, seconds = 0] = (/^(\d{1,7})\/(\d{1,4})s$/.exec(text) ?? []).map(Number);
    const isWithin = quota >= 1 && quota <= quotaMax && seconds >= 1 && seconds <= windowMaxSeconds;
    return isWithin ? { name, quota, windowMs: seconds * 1_000 } : undefined;
  };
  const given = read(env[variable] || usual);
  if (given) return given;
  faults.push(
    `${variable} is ${JSON.stringify(env[variable])} and should look like ${usual}: ` +
      `1 to ${quotaMax} calls in 1 to ${windowMaxSeconds} seconds`,
  );
  return read(usual) as Policy;
}
