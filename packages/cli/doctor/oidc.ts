/** Checks whether the OpenID provider can be reached and supports what the gateway needs. */
import { formatError } from "../errors.ts";
import { type Finding, findingsFor } from "./finding.ts";

const requiredFields = ["authorization_endpoint", "token_endpoint", "jwks_uri"];

export async function checkOidc(issuer: string | undefined, signal: AbortSignal): Promise<Finding[]> {
  const { ok, fault } = findingsFor("OpenID");
  if (!issuer) return [ok("OIDC_ISSUER is not set, and not needed")];
  // The specification puts the document below the path of the issuer, not at the root of its host.
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    const response = await fetch(address, { signal, redirect: "error" });
    if (!response.ok) return [fault(`${address} returned ${response.status}`, "Correct OIDC_ISSUER.")];
    const document = (await response.json()) as Record<string, unknown>;
    const findings = [...checkDocument(issuer, document), ...(await checkKeys(document.jwks_uri, signal))];
    return findings.length > 0 ? findings : [ok(issuer)];
  } catch (error) {
    return [fault(`${address}: ${formatError(error)}`, "Start it, or correct OIDC_ISSUER.")];
  }
}

function checkDocument(issuer: string, document: Record<string, unknown>): Finding[] {
  const { warning, fault } = findingsFor("OpenID");
  const findings: Finding[] = [];
  if (document.issuer !== issuer) {
    findings.push(
      fault(`its issuer is ${document.issuer}`, "Set OIDC_ISSUER to exactly this value: tokens are verified with it."),
    );
  }
  const missing = requiredFields.filter((name) => typeof document[name] !== "string");
  if (missing.length > 0)
    findings.push(fault(`its configuration lacks ${missing.join(", ")}`, "Use a provider with the code flow."));
  const methods = document.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    findings.push(warning("it does not announce PKCE with S256", "Enable PKCE for the client."));
  }
  if (URL.parse(issuer)?.protocol === "http:" && !isLoopback(issuer)) {
    findings.push(fault("the connection has no TLS", "Use an https:// issuer: tokens are sent over this connection."));
  }
  if (typeof document.end_session_endpoint !== "string") {
    findings.push(
      warning(
        "it has no logout endpoint",
        "Players who log out of the game stay logged in at the provider. Tell them.",
      ),
    );
  }
  return findings;
}

/** ID tokens are verified with these keys. Their URL may be unreachable although the issuer is reachable. */
async function checkKeys(address: unknown, signal: AbortSignal): Promise<Finding[]> {
  const { fault } = findingsFor("OpenID");
  if (typeof address !== "string") return [];
  const todo = "Check that its keys can be reached from here.";
  try {
    const response = await fetch(address, { signal, redirect: "error" });
    const { keys } = (response.ok ? await response.json() : {}) as { keys?: unknown };
    return Array.isArray(keys) && keys.length > 0 ? [] : [fault(`there are no keys at ${address}`, todo)];
  } catch (error) {
    return [fault(`${address}: ${formatError(error)}`, todo)];
  }
}

const isLoopback = (url: string): boolean =>
  ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(url)?.hostname ?? "");
