/**
 * Login of a native client (RFC 8252): a program that opens the player's browser. The login ends at a port of the player's
 * machine or at an address that the settings allow; anywhere else a stranger would get the code.
 */
import { Problem } from "@todoke/kernel/problem";
import { isNativeRedirect } from "../config.ts";
import { nativeLoginInvalid } from "../problems.ts";

/** Stored as JSON with a pending login, so its field names stay. */
export interface NativeClient {
  readonly redirectUri: string;
  /** PKCE, S256. */
  readonly challenge: string;
  readonly state?: string;
}

export interface NativeQuery {
  readonly client?: "native";
  readonly redirect_uri?: string;
  readonly code_challenge?: string;
  readonly state?: string;
}

/** Returns undefined for a browser's login. Throws if the redirect is not allowed. */
export function parseNativeClient(query: NativeQuery, allowed: readonly string[]): NativeClient | undefined {
  const { client, redirect_uri, code_challenge, state } = query;
  if (!client) return undefined;
  if (!redirect_uri || !isNativeRedirect(redirect_uri, allowed))
    throw invalid(
      "redirect_uri",
      "must be http://127.0.0.1:<port>/…, http://[::1]:<port>/…, or a configured redirect address",
    );
  if (!code_challenge) throw invalid("code_challenge", "is missing: the SHA-256 of the code_verifier, in base64url");
  return { redirectUri: redirect_uri, challenge: code_challenge, ...(state !== undefined && { state }) };
}

function invalid(name: string, detail: string): Problem {
  const field = `query.${name}`;
  return nativeLoginInvalid(`${field} ${detail}`, { fields: [{ field, detail }] });
}

/** The waiting program also gets failures, as error codes of RFC 6749. */
export function nativeRedirectUrl(
  client: NativeClient,
  outcome: { readonly code: string } | { readonly error: unknown },
): string {
  const url = new URL(client.redirectUri);
  if ("code" in outcome) url.searchParams.set("code", outcome.code);
  else url.searchParams.set("error", toOAuthError(outcome.error));
  if (client.state !== undefined) url.searchParams.set("state", client.state);
  return url.href;
}

function toOAuthError(error: unknown): string {
  const status = error instanceof Problem ? error.status : 500;
  if (status === 503) return "temporarily_unavailable";
  return status < 500 ? "access_denied" : "server_error";
}
