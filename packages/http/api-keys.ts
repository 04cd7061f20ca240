/**
 * API keys of back-ends such as a purchase service: `Authorization: Bearer tdk_…`.
 *
 * Only the SHA-256 of a key is stored. A key has a holder, who is the caller in every idempotency scope, and scopes, which are all
 * that the holder may do.
 *
 * Most keys are in the table `api_keys`, where `todoke keys` creates and revokes them. A key is cached for `cacheMs`, and not
 * beyond its expiry: a process that misses the wake-up of a revocation accepts the key for that long at most. Unknown keys
 * cannot fill the memory, evict known keys, or occupy more than one connection.
 */
import { hash, randomBytes } from "node:crypto";
import { createBatcher } from "@todoke/kernel/batcher";
import type { Db } from "@todoke/kernel/db";
import { findLiveKeys, type LiveKey, recordUse } from "./api-keys-store.ts";
import { BoundedMap } from "./bounded-map.ts";
import { type Principal, type Scope, scopes } from "./callers.ts";
import { type Env, readList } from "./env.ts";

export interface ApiKey {
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Hex. */
  readonly sha256: string;
}

/** 256 random bits; the prefix lets secret scanners recognize it. */
export const newApiKey = (): string => `tdk_${randomBytes(32).toString("base64url")}`;

/** Hex. Keys are looked up by hash and never compared, so that timing reveals nothing. */
export const hashApiKey = (key: string): string => hash("sha256", key, "hex");

const principalOf = ({ holder, scopes }: Pick<ApiKey, "holder" | "scopes">) =>
  ({ kind: "key", name: holder, scopes }) as const;

const principalOfLive = (key: LiveKey): Principal => ({
  ...principalOf(key),
  keyId: key.key_id,
  ...(key.per_second !== null && { perSecond: key.per_second }),
});

const holdersByHash = (keys: readonly ApiKey[]) =>
  new Map<string, Principal>(keys.map((key) => [key.sha256, principalOf(key)]));

/** Finds the holder of a fixed key. */
export function fixedKeys(keys: readonly ApiKey[]): (presented: string) => Principal | undefined {
  const holders = holdersByHash(keys);
  return (presented) => holders.get(hashApiKey(presented));
}

export interface ApiKeys {
  /** The holder of a key; undefined if it is unknown. Synchronous if the key is cached. */
  find(presented: string): Principal | undefined | Promise<Principal | undefined>;
  /** For when a key was created or revoked. */
  clearCache(): void;
}

export interface ApiKeysOptions {
  /** Of the service, with the table `api_keys`. */
  readonly db: Db;
  /** The keys of TODOKE_API_KEYS; they need no database. */
  readonly fixed: readonly ApiKey[];
  readonly cacheMs?: number;
}

/** The result of a lookup. */
interface CachedKey {
  readonly principal: Principal | undefined;
  /** On the clock of `performance.now()`. */
  readonly until: number;
}

const cacheMax = 10_000;
const tableKey = /^tdk_[\x21-\x7e]{1,252}$/;

export function openApiKeys({ db, fixed, cacheMs = 5_000 }: ApiKeysOptions): ApiKeys {
  const fixedHolders = holdersByHash(fixed);
  // Separate, so that a flood of unknown keys evicts unknown keys only.
  const known = new BoundedMap<string, CachedKey>(cacheMax);
  const unknown = new BoundedMap<string, CachedKey>(cacheMax);
  let generation = 0;

  async function read(hashes: readonly string[]): Promise<CachedKey[]> {
    const [readAt, readIn] = [performance.now(), generation];
    const found = new Map((await findLiveKeys(db, hashes)).map((key) => [key.sha256, key]));
    void recordUses(db, [...found.values()]);
    return hashes.map((sha256) => {
      const seen = toCachedKey(found.get(sha256), { readAt, cacheMs });
      // If the cache was cleared since, this result may be older than a revocation.
      if (readIn === generation) remember(sha256, seen);
      return seen;
    });
  }

  function remember(sha256: string, seen: CachedKey): void {
    for (const map of [known, unknown]) map.delete(sha256);
    (seen.principal ? known : unknown).set(sha256, seen);
  }

  // One statement at a time for all keys that are not cached: a flood of them leaves the pool to others.
  const readBatched = createBatcher({ run: read });

  return {
    find(presented) {
      const sha256 = hashApiKey(presented);
      const fixedHolder = fixedHolders.get(sha256);
      if (fixedHolder || !tableKey.test(presented)) return fixedHolder;
      const seen = known.get(sha256) ?? unknown.get(sha256);
      if (seen && performance.now() < seen.until) return seen.principal;
      return readBatched(sha256).then(({ principal }) => principal);
    },
    clearCache() {
      generation++;
      known.clear();
      unknown.clear();
    },
  };
}

/** Counted from before the read, so that it never outlives the key by the database's clock. */
function toCachedKey(key: LiveKey | undefined, { readAt, cacheMs }: { readAt: number; cacheMs: number }): CachedKey {
  return { principal: key && principalOfLive(key), until: readAt + Math.min(cacheMs, key?.ends_in_ms ?? cacheMs) };
}

/** Not awaited, and nothing depends on it: after an error the next read tries again. */
async function recordUses(db: Db, keys: readonly LiveKey[]): Promise<void> {
  for (const { key_id } of keys.filter((key) => key.use_is_due)) await recordUse(db, key_id).catch(() => {});
}

/** Without colon and space, so that no holder can pose as a user or a service. */
export const holderName = /^[a-z0-9][a-z0-9_-]{0,62}$/;

const entry = /^([a-z0-9][a-z0-9_-]{0,62})=([a-z:+-]+)=([0-9a-f]{64})$/;

/** TODOKE_API_KEYS: `holder=scope+scope=sha256` of each key, separated by commas. */
export function readApiKeys(env: Env, errors: string[]): readonly ApiKey[] {
  const read = readList(env.TODOKE_API_KEYS).map(readApiKey);
  const keys = read.filter((each): each is ApiKey => typeof each !== "string");
  errors.push(...read.filter((each) => typeof each === "string"));
  const holders = keys.map((key) => key.holder);
  for (const holder of new Set(holders.filter((each, index) => holders.indexOf(each) !== index))) {
    errors.push(`TODOKE_API_KEYS names ${holder} twice: two holders with one name would share their idempotency keys`);
  }
  return keys;
}

const form =
  "It holds holder=scope+scope=sha256 for each key, separated by commas; " +
  `scopes are ${scopes.join(", ")}; sha256 is what \`printf %s tdk_… | sha256sum\` prints`;

/** Errors do not show the text: it may be the key itself. */
function readApiKey(text: string, index: number): ApiKey | string {
  const [, holder, granted, sha256] = entry.exec(text) ?? [];
  if (!holder || !granted || !sha256) return `TODOKE_API_KEYS: entry ${index + 1} cannot be read. ${form}`;
  const unknown = granted.split("+").filter((scope) => !(scopes as readonly string[]).includes(scope));
  if (unknown.length > 0) return `TODOKE_API_KEYS: ${holder} has unknown scopes: ${unknown.join(", ")}. ${form}`;
  return { holder, scopes: granted.split("+") as Scope[], sha256 };
}
