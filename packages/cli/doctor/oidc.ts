/** Whether the OpenID provider can be found and does what the gateway needs of it. */
import { reasonOf } from "../faults.ts";
import { about, type Finding } from "./finding.ts";

const needed = ["authorization_endpoint", "token_endpoint", "jwks_uri"];

export async function checkOidc(issuer: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { ok, fault } = about("OpenID");
  if (!issuer) return [ok("none given, and none is needed")];
  // The specification puts the document below the issuer's path, not at the root of its host.
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    const response = await fetch(address, { signal, redirect: "error" });
    if (!response.ok) return [fault(`${address} answers ${response.status}`, "Correct OIDC_ISSUER.")];
    const document = (await response.json()) as Record<string, unknown>;
    const findings = [...judged(issuer, document), ...(await keysOf(document.jwks_uri, signal))];
    return findings.length > 0 ? findings : [ok(issuer)];
  } catch (error) {
    return [fault(`${address}: ${reasonOf(error)}`, "Start it, or correct OIDC_ISSUER.")];
  }
}

function judged(issuer: string, document: Record<string, unknown>): Finding[] {
  const { warning, fault } = about("OpenID");
  const findings: Finding[] = [];
  if (document.issuer !== issuer) {
    findings.push(
      fault(`it calls itself ${document.issuer}`, "Set OIDC_ISSUER to exactly that: tokens are checked by it."),
    );
  }
  const missing = needed.filter((name) => typeof document[name] !== "string");
  if (missing.length > 0)
    findings.push(fault(`it names no ${missing.join(", ")}`, "Use a provider with the code flow."));
  const methods = document.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    findings.push(warning("it does not say that it takes PKCE with S256", "Turn PKCE on for the client."));
  }
  if (URL.parse(issuer)?.protocol === "http:" && !isLoopback(issuer)) {
    findings.push(fault("it is reached without TLS", "Use an https:// issuer: tokens travel on this connection."));
  }
  if (typeof document.end_session_endpoint !== "string") {
    findings.push(
      warning("it cannot be asked to log out", "Tell players: logging out of the game leaves them logged in there."),
    );
  }
  return findings;
}

/** Who logs in is believed by these keys; a way that leads to the issuer need not lead to them. */
async function keysOf(address: unknown, signal: AbortSignal): Promise<Finding[]> {
  const { fault } = about("OpenID");
  if (typeof address !== "string") return [];
  const todo = "See that its keys can be reached from here.";
  try {
    const response = await fetch(address, { signal, redirect: "error" });
    const { keys } = (response.ok ? await response.json() : {}) as { keys?: unknown };
    return Array.isArray(keys) && keys.length > 0 ? [] : [fault(`there are no keys at ${address}`, todo)];
  } catch (error) {
    return [fault(`${address}: ${reasonOf(error)}`, todo)];
  }
}

const isLoopback = (url: string): boolean =>
  ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(url)?.hostname ?? "");
