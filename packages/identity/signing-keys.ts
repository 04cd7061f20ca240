/**
 * The signing keys of tokens. The first one signs. The others are still published, so that their tokens can be verified until
 * they expire. In a file they survive a restart; only its owner can read it.
 */
import { generateKeyPair, randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";

/** One that signs and two previous ones. Tokens expire after an hour, so that is enough for any real rotation. */
const keysMax = 3;

/** Reads the keys of the file. If it does not exist, creates it with a new key. */
export async function readKeys(file: string | undefined): Promise<readonly JWK[]> {
  const stored = file === undefined ? undefined : await readFileIfExists(file);
  return stored === undefined ? addKey([], file) : parseKeys(stored, file);
}

/** Puts a new key in front. It is in the file before it signs a token. */
export async function addKey(keys: readonly JWK[], file: string | undefined): Promise<readonly JWK[]> {
  const more = [await createKey(), ...keys].slice(0, keysMax);
  if (file !== undefined) {
    await writeFile(`${file}.draft`, JSON.stringify({ keys: more }), { mode: 0o600 });
    await rename(`${file}.draft`, file);
  }
  return more;
}

/** RS256, because every client supports it. */
async function createKey(): Promise<JWK> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2_048 });
  return { ...(privateKey.export({ format: "jwk" }) as JWK), kid: randomUUID(), alg: "RS256", use: "sig" };
}

async function readFileIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

function parseKeys(text: string, file: string | undefined): readonly JWK[] {
  try {
    const { keys } = JSON.parse(text);
    if (Array.isArray(keys) && keys.length > 0) return keys;
  } catch {
    // The error below replaces that of the parser, which would quote from a private key.
  }
  throw new Error(`${file} does not contain signing keys. Delete it to create new ones.`);
}
