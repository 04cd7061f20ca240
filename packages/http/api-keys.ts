/**
 * Back-ends (a purchase service) call with an API key: `Authorization: Bearer tdk_…`.
 *
 * Keys are known here only by their SHA-256. A key names its holder, who is the caller in every idempotency scope, and
 * what the holder may do. Nothing is allowed that no key allows.
 *
 * Most keys are in the table `api_keys`, where `todoke keys` makes and revokes them. What was read of one is believed for
 * `cacheMs`, and no longer than the key lives: so long, at the most, does a revocation take that nobody tells this
 * process of. Strangers cannot fill the memory, push known keys out of it, or keep more than one statement busy.
 */
import { hash, randomBytes } from "node:crypto";
import type { Db } from "@todoke/kernel/db";
import { gather } from "@todoke/kernel/gather";
import { findLiveKeys, type LiveKey, noteUse } from "./api-keys-store.ts";
import { type Principal, type Scope, scopes } from "./callers.ts";

export interface ApiKey {
  readonly holder: string;
  readonly scopes: readonly Scope[];
  /** Hex. */
  readonly sha256: string;
}

/** 256 random bits; the prefix lets scanners of leaked secrets know what they have found. */
export const newApiKey = (): string => `tdk_${randomBytes(32).toString("base64url")}`;

/** Hex. A key is looked up by this and never compared: how long that takes tells nothing about any key. */
export const hashOfKey = (key: string): string => hash("sha256", key, "hex");

const principalOf = ({ holder, scopes }: Pick<ApiKey, "holder" | "scopes">): Principal => ({
  kind: "key",
  name: holder,
  scopes,
});

const holdersByHash = (keys: readonly ApiKey[]) => new Map(keys.map((key) => [key.sha256, principalOf(key)]));

/** Whose key it is, of those that are fixed. */
export function fixedKeys(keys: readonly ApiKey[]): (presented: string) => Principal | undefined {
  const holders = holdersByHash(keys);
  return (presented) => holders.get(hashOfKey(presented));
}

export interface ApiKeys {
  /** Whose key it is; nothing when it is nobody's. At once when it was read a moment ago. */
  find(presented: string): Principal | undefined | Promise<Principal | undefined>;
  /** A key was made or revoked: whatever was read before now counts no more. */
  forget(): void;
}

export interface ApiKeysOptions {
  /** The service's own, with the table `api_keys`. */
  readonly db: Db;
  /** Those of TODOKE_API_KEYS: they need no database, and end with the process. */
  readonly fixed: readonly ApiKey[];
  readonly cacheMs?: number;
}

/** What a read has told of one hash. */
interface Seen {
  readonly principal: Principal | undefined;
  /** On the clock of `performance.now()`. */
  readonly until: number;
}

const tableKey = /^tdk_[\x21-\x7e]{1,252}$/;

export function openApiKeys({ db, fixed, cacheMs = 5_000 }: ApiKeysOptions): ApiKeys {
  const fixedHolders = holdersByHash(fixed);
  // Apart, so that a flood of unknown keys throws out unknown keys only.
  const known = new Map<string, Seen>();
  const unknown = new Map<string, Seen>();
  let timesForgotten = 0;

  async function read(hashes: readonly string[]): Promise<Seen[]> {
    const [askedAt, asOf] = [performance.now(), timesForgotten];
    const found = new Map((await findLiveKeys(db, hashes)).map((key) => [key.sha256, key]));
    void noteUses(db, [...found.values()]);
    return hashes.map((sha256) => {
      const seen = seenOf(found.get(sha256), { askedAt, cacheMs });
      // Otherwise it may be from before the revocation that we were told of meanwhile.
      if (asOf === timesForgotten) remember(sha256, seen);
      return seen;
    });
  }

  function remember(sha256: string, seen: Seen): void {
    for (const map of [known, unknown]) map.delete(sha256);
    keep(seen.principal ? known : unknown, sha256, seen);
  }

  // One statement at a time for all whose key is not in the cache: a flood of strangers leaves the pool to others.
  const readGathered = gather({ run: read });

  return {
    find(presented) {
      const sha256 = hashOfKey(presented);
      const fixedHolder = fixedHolders.get(sha256);
      if (fixedHolder || !tableKey.test(presented)) return fixedHolder;
      const seen = known.get(sha256) ?? unknown.get(sha256);
      if (seen && performance.now() < seen.until) return seen.principal;
      return readGathered(sha256).then(({ principal }) => principal);
    },
    forget() {
      timesForgotten++;
      known.clear();
      unknown.clear();
    },
  };
}

/** Counted from before the question, so that it never ends later than the database would say. */
function seenOf(key: LiveKey | undefined, { askedAt, cacheMs }: { askedAt: number; cacheMs: number }): Seen {
  return { principal: key && principalOf(key), until: askedAt + Math.min(cacheMs, key?.ends_in_ms ?? cacheMs) };
}

const keptMax = 10_000;

/** The oldest makes room: whoever still needs it reads it again. */
function keep(map: Map<string, Seen>, sha256: string, seen: Seen): void {
  const [oldest] = map.size < keptMax ? [] : map.keys();
  if (oldest !== undefined) map.delete(oldest);
  map.set(sha256, seen);
}

/** Nobody waits for it, and nothing depends on it: one that fails is due again at the next read. */
async function noteUses(db: Db, keys: readonly LiveKey[]): Promise<void> {
  for (const { key_id } of keys.filter((key) => key.use_is_due)) await noteUse(db, key_id).catch(() => {});
}

/** Without : and space, so that no holder can pass for a user or a service. */
export const holderName = /^[a-z0-9][a-z0-9_-]{0,62}$/;

const entry = /^([a-z0-9][a-z0-9_-]{0,62})=([a-z:+-]+)=([0-9a-f]{64})$/;

/** TODOKE_API_KEYS: `holder=scope+scope=sha256` of each key, separated by commas. */
export function readApiKeys(env: Readonly<Record<string, string | undefined>>): { keys: ApiKey[]; faults: string[] } {
  const given = (env.TODOKE_API_KEYS ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter(Boolean);
  const read = given.map(readApiKey);
  const keys = read.filter((each): each is ApiKey => typeof each !== "string");
  const faults = read.filter((each): each is string => typeof each === "string");
  const holders = keys.map((key) => key.holder);
  for (const holder of new Set(holders.filter((each, place) => holders.indexOf(each) !== place))) {
    faults.push(`TODOKE_API_KEYS names ${holder} twice: two holders of one name would share their idempotency keys`);
  }
  return { keys, faults };
}

const form =
  "It holds holder=scope+scope=sha256 for each key, separated by commas; " +
  `scopes are ${scopes.join(", ")}; sha256 is what \`printf %s tdk_… | sha256sum\` prints`;

/** The text is not shown in a fault: somebody may have put the key itself there. */
function readApiKey(text: string, place: number): ApiKey | string {
  const [, holder, granted, sha256] = entry.exec(text) ?? [];
  if (!holder || !granted || !sha256) return `TODOKE_API_KEYS: entry ${place + 1} cannot be read. ${form}`;
  const unknown = granted.split("+").filter((scope) => !(scopes as readonly string[]).includes(scope));
  if (unknown.length > 0) return `TODOKE_API_KEYS: ${holder} has unknown scopes: ${unknown.join(", ")}. ${form}`;
  return { holder, scopes: granted.split("+") as Scope[], sha256 };
}
