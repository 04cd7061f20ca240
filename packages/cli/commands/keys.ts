/** `todoke keys`: manages API keys. It needs only the databases. The subcommands are in keys/. */
import type { Command } from "../command.ts";
import { runSubcommand, type Subcommand } from "../subcommands.ts";

const subcommands: Record<"create" | "list" | "revoke" | "pair", Subcommand> = {
  create: {
    run: async (call) => (await import("../keys/create.ts")).create(call),
    options: ["scopes", "services", "expires", "never", "per-second", "id", "sha256", "by", "json"],
  },
  list: { run: async (call) => (await import("../keys/list.ts")).list(call), options: ["services", "all", "json"] },
  revoke: {
    run: async (call) => (await import("../keys/revoke.ts")).revoke(call),
    options: ["services", "reason", "by"],
  },
  pair: { run: async (call) => (await import("../keys/pair.ts")).pair(call), options: [] },
};

export const keys: Command = {
  name: "keys",
  summary: "create, list and revoke API keys; create the key pair of the gateway",
  usage:
    "todoke keys create <holder> --scopes <…> --services <…|all> | list [holder] | revoke <id|holder> | pair <name>",
  details: `
  create    create a key for a back-end and print it once; only its SHA-256 is stored
  list      list the valid keys, with their services and last use; --all: also revoked and expired keys
  revoke    revoke one key by its id, or all keys of a holder; running services reject it within 5 seconds
  pair      create a key pair for GATEWAY_BFF_TOKEN_KEY and TODOKE_TOKEN_KEYS, with steps to replace the old pair

Each service stores keys in its own schema. The command needs only the databases (DATABASE_URL or
<SERVICE>_DATABASE_URL, else the database of the \`todoke dev\` in this folder), so it works while services are down.

Scopes: entitlements:write, points:write, orders:write, orders:read-all, orders:resume, orders:cancel-all,
matchmaking:write, read.

Idempotency keys belong to the holder. To replace a key, create a second key for the same holder, deploy it, and
revoke the first one by its id. If a service cannot be reached, create prints the command that completes it there, and
revoke can be run again.`,
  values: {
    scopes: ["<scope,…>", "create: what the key may do"],
    services: ["<service,…|all>", "only in these services; create requires it (list, revoke: default all)"],
    expires: ["<90d|time>", "create: lifetime in days, or expiry time as 2027-01-31T00:00:00Z (default 90d)"],
    "per-second": ["<number>", "create: requests per second to each process (default <SERVICE>_KEY_PER_SECOND)"],
    id: ["<uuid>", "create: the id of a key that other services already have"],
    sha256: ["<hex>", "create: the hash of an existing key; no key is printed"],
    reason: ["<text>", "revoke: the reason, recorded"],
    by: ["<name>", "create, revoke: your name, recorded (default: the current user)"],
  },
  switches: {
    never: "create: the key does not expire",
    all: "list: also revoked and expired keys",
    json: "create, list: print JSON",
  },
  takesArgs: true,
  run: (call) => runSubcommand(subcommands, call),
};
