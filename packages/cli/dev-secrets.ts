/**
 * What `todoke dev` makes once so that nobody has to: the keys with which its services trust each other. Kept in the data
 * folder, for its owner's eyes only; with other ones what the identity provider gave could not be opened after a restart.
 */
import { randomBytes } from "node:crypto";
import { keep, readKept } from "./data-folder.ts";

/** By the names under which services read them. */
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

/** Those of the folder; one that is missing there, as after an upgrade, is made and kept. */
export async function keptSecrets(): Promise<DevSecrets> {
  const kept = await readKept<Partial<DevSecrets>>(file);
  const made = await newSecrets();
  const secrets = { ...made, ...kept };
  if (Object.keys(made).some((name) => !kept || !(name in kept))) await keep(file, secrets);
  return secrets;
}

export async function newSecrets(): Promise<DevSecrets> {
  // Loaded here, because it brings a web framework along that `todoke help` can do without.
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
