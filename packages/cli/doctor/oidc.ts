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
    return judged(issuer, (await response.json()) as Record<string, unknown>);
  } catch (error) {
    return [fault(`${address}: ${reasonOf(error)}`, "Start it, or correct OIDC_ISSUER.")];
  }
}

function judged(issuer: string, document: Record<string, unknown>): Finding[] {
  const { ok, warning, fault } = about("OpenID");
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
  return findings.length > 0 ? findings : [ok(issuer)];
}

const isLoopback = (url: string): boolean =>
  ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(url)?.hostname ?? "");
