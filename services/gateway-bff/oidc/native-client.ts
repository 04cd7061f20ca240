/**
 * Log-in of a native client (RFC 8252): a program that opens the player's own browser for it. It ends where the program
 * waits: at a port of the player's machine, or at an address that the settings name, whole or by its scheme. Anywhere else
 * would hand the code to a stranger.
 */
import { Problem } from "@todoke/kernel/problem";
import { nativeLoginInvalid } from "./problems.ts";

/** Who waits for the end of a log-in. */
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

/** Nothing for a browser's log-in. One that may not end where it wants to is refused here, and never sent there. */
export function nativeClientOf(query: NativeQuery, allowed: readonly string[]): NativeClient | undefined {
  const { client, redirect_uri, code_challenge, state } = query;
  if (!client) return undefined;
  if (!redirect_uri || !isNativeRedirect(redirect_uri, allowed)) {
    throw invalid("redirect_uri", "must be http://127.0.0.1:<port>/…, http://[::1]:<port>/…, or an address known here");
  }
  if (!code_challenge) throw invalid("code_challenge", "is missing: the SHA-256 of the code_verifier, in base64url");
  return { redirectUri: redirect_uri, challenge: code_challenge, ...(state !== undefined && { state }) };
}

function invalid(name: string, detail: string): Problem {
  const field = `query.${name}`;
  return nativeLoginInvalid(`${field} ${detail}`, { fields: [{ field, detail }] });
}

const addressMax = 512;

/** `allowed` holds whole addresses, and schemes with their colon: `com.example.game:`. */
export function isNativeRedirect(address: string, allowed: readonly string[]): boolean {
  if (address.length > addressMax || !/^[\x21-\x5b\x5d-\x7e]+$/.test(address)) return false;
  const url = URL.parse(address);
  if (!url || url.hash || url.username || url.password) return false;
  return isOwnMachine(url) || allowed.includes(address) || (!isOfTheWeb(url) && allowed.includes(url.protocol));
}

/** By number, not by name: a name can be made to mean another machine. */
const isOwnMachine = ({ protocol, hostname }: URL): boolean =>
  protocol === "http:" && (hostname === "127.0.0.1" || hostname === "[::1]");

/** What a browser opens itself, and so could run or send elsewhere: a whole scheme of these is never let through. */
const isOfTheWeb = ({ protocol }: URL): boolean =>
  ["http:", "https:", "ws:", "wss:", "ftp:", "file:", "data:", "blob:", "javascript:", "about:"].includes(protocol);

/** Where the browser goes in the end: the program that waits learns of a failure too, in the words of RFC 6749. */
export function nativeAddress(
  client: NativeClient,
  outcome: { readonly code: string } | { readonly error: unknown },
): string {
  const url = new URL(client.redirectUri);
  if ("code" in outcome) url.searchParams.set("code", outcome.code);
  else url.searchParams.set("error", errorWord(outcome.error));
  if (client.state !== undefined) url.searchParams.set("state", client.state);
  return url.href;
}

function errorWord(error: unknown): string {
  const status = error instanceof Problem ? error.status : 500;
  if (status === 503) return "temporarily_unavailable";
  return status < 500 ? "access_denied" : "server_error";
}
