/** `todoke keys`: who may call, managed by the databases alone. The verbs are in keys/, and loaded when one is asked for. */
import type { Command } from "../command.ts";
import { runVerb, type Verb } from "../verbs.ts";

const verbs: Record<"create" | "list" | "revoke" | "pair", Verb> = {
  create: {
    run: async (call) => (await import("../keys/create.ts")).create(call),
    options: ["scopes", "services", "expires", "never", "id", "sha256", "by", "json"],
  },
  list: {
    run: async (call) => (await import("../keys/list.ts")).list(call),
    options: ["services", "all", "json"],
  },
  revoke: {
    run: async (call) => (await import("../keys/revoke.ts")).revoke(call),
    options: ["services", "reason", "by"],
  },
  pair: {
    run: async (call) => (await import("../keys/pair.ts")).pair(call),
    options: [],
  },
};

export const keys: Command = {
  name: "keys",
  summary: "create, list and revoke API keys; make a pair that signs calls between services",
  usage:
    "todoke keys create <holder> --scopes <…> --services <…|all> | list [holder] | revoke <id|holder> | pair <name>",
  details: `
  create    a key for a back-end, shown this once; only its SHA-256 is kept
  list      the keys that are live, with their services and last use; --all: also those that are not
  revoke    one key by its id, or all keys of a holder; services that run refuse it from then on
  pair      a new pair for GATEWAY_BFF_TOKEN_KEY and TODOKE_TOKEN_KEYS, and how to replace the old one

Keys are kept by each service in its own schema. It needs the databases only (DATABASE_URL or
<SERVICE>_DATABASE_URL, else that of the \`todoke dev\` in this folder), so it works while services are down.

Scopes: entitlements:write, points:write, orders:write, orders:read-all, orders:resume,
matchmaking:write, read. The holder is the caller in every idempotency scope, so a key is replaced by
a second one of the same holder: create, hand over, revoke the first by its id.
Twice is once: where a service could not be reached, the same command again does the rest.`,
  values: {
    scopes: ["<scope,…>", "create: what the key may do"],
    services: ["<service,…|all>", "only in these; create needs it, list and revoke mean all without it"],
    expires: ["<90d|time>", "create: when it ends, in days or as 2027-01-31T00:00:00Z; 90d unless given"],
    id: ["<uuid>", "create: the id of a key that some services have already"],
    sha256: ["<hex>", "create: the hash of a key that exists already; no key is shown"],
    reason: ["<text>", "revoke: why; kept"],
    by: ["<name>", "create, revoke: who asks for it, if not the user who runs this; kept"],
  },
  switches: {
    never: "create: it does not expire",
    all: "list: also keys that were revoked or have run out",
    json: "create, list: print JSON",
  },
  takesNames: true,
  run: (call) => runVerb(verbs, call),
};
