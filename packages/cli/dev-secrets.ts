/**
 * The keys with which the services of `todoke dev` trust each other. They are created once and stored in the data folder:
 * with new keys, sessions from before a restart could not be decrypted.
 */
import { randomBytes } from "node:crypto";
import { readDataFile, writeDataFile } from "./data-folder.ts";

/** Keyed by environment variable. */
export type DevSecrets = Readonly<
  Record<
    | "GATEWAY_BFF_SECRET"
    | "GATEWAY_BFF_TOKEN_KEY"
    | "MATCHMAKING_TICKET_SECRET"
    | "OIDC_CLIENT_SECRET"
    | "TODOKE_TOKEN_KEYS",
    string
  >
>;

const file = "secrets.json";

/** The stored secrets. A missing one, as after an upgrade, is created and stored. */
export async function loadSecrets(): Promise<DevSecrets> {
  const stored = await readDataFile<Partial<DevSecrets>>(file);
  const created = await createSecrets();
  const secrets = { ...created, ...stored };
  if (Object.keys(created).some((name) => !stored || !(name in stored))) await writeDataFile(file, secrets);
  return secrets;
}

export async function createSecrets(): Promise<DevSecrets> {
  // Imported here because it loads a web framework, which `todoke help` does not need.
  const { newSigningKey, toVerifyingKey, formatSigningKey, formatVerifyingKey } = await import("@todoke/http");
  const key = newSigningKey("k1");
  return {
    GATEWAY_BFF_SECRET: randomBytes(32).toString("base64url"),
    GATEWAY_BFF_TOKEN_KEY: formatSigningKey(key),
    MATCHMAKING_TICKET_SECRET: randomBytes(32).toString("base64url"),
    OIDC_CLIENT_SECRET: randomBytes(32).toString("base64url"),
    TODOKE_TOKEN_KEYS: formatVerifyingKey(toVerifyingKey("gateway-bff", key)),
  };
}
