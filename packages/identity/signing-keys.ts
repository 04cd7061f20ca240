/**
 * The keys that tokens are signed with. The first signs; those behind it have signed before and are still published, so
 * that what they signed can be checked until it ends. Kept in a file they survive a restart; it is for its owner's eyes only.
 */
import { generateKeyPair, randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";

/** One that signs and two that have signed: tokens live for an hour, and nobody rotates by the minute in earnest. */
const keysMax = 3;

/** Those of the file; where there is none yet, a new one, which is then in the file. */
export async function readKeys(file: string | undefined): Promise<readonly JWK[]> {
  const kept = file === undefined ? undefined : await readFileIfThere(file);
  return kept === undefined ? addKey([], file) : parsed(kept, file);
}

/** A new key in front of `keys`; in the file before anybody can be given a token that it signed. */
export async function addKey(keys: readonly JWK[], file: string | undefined): Promise<readonly JWK[]> {
  const more = [await newKey(), ...keys].slice(0, keysMax);
  if (file !== undefined) {
    await writeFile(`${file}.draft`, JSON.stringify({ keys: more }), { mode: 0o600 });
    await rename(`${file}.draft`, file);
  }
  return more;
}

/** RS256 is what every client can check. */
async function newKey(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2_048 });
  return { ...(privateKey.export({ format: "jwk" }) as JWK), kid: randomUUID(), alg: "RS256", use: "sig" };
}

async function readFileIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

function parsed(text: string, file: string | undefined): readonly JWK[] {
  try {
    const { keys } = JSON.parse(text);
    if (Array.isArray(keys) && keys.length > 0) return keys;
  } catch {
    // It is told of below; the parser's own words would quote from a private key.
  }
  throw new Error(`${file} does not hold signing keys: remove it to have new ones made.`);
}
