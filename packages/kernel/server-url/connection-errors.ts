/** Says in a sentence why a connection failed and what to do, where the error of the client library does not. */
import { formatServerUrl, parseServerUrl } from "./parse.ts";

/** The server cannot be reached for a reason that an operator has to remove. `message` says which, and has no password. */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
  /** The kernel's `isUnavailable` checks it: the response is a 503, and the inbox counts no attempt. */
  readonly code = "ECONNREFUSED";
}

/** An error with what Node and OpenSSL add to it. */
interface Failure {
  readonly code: string;
  readonly message: string;
  readonly host?: string;
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } };
}

/** Returns the error with its explanation; the error itself if there is nothing to explain. `engine` is "NATS", "Redis", … */
export function explainConnectionError(error: unknown, engine: string, url: string): unknown {
  const server = `${engine} at ${formatServerUrl(url)}`;
  for (const failure of chain(error)) {
    const text = explainTls(failure, server) ?? explainPlain(failure, server, url);
    if (text !== undefined) return new ServerUnreachable(text, { cause: error });
  }
  return error;
}

/** The error, its causes and its parts, at most a few levels deep. */
function chain(error: unknown, depth = 0): Failure[] {
  if (!(error instanceof Error) || depth > 5) return [];
  const own = { ...error, code: String("code" in error ? error.code : ""), message: error.message };
  const parts = error instanceof AggregateError ? error.errors : [];
  return [own, ...[...parts, error.cause].flatMap((part) => chain(part, depth + 1))];
}

const untrusted = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
]);

function explainTls({ code, message, host, cert }: Failure, server: string): string | undefined {
  if (untrusted.has(code))
    return `the certificate of ${server} is not signed by a CA that this process trusts: set its CA file to the CA that signed it`;
  if (code === "CERT_HAS_EXPIRED")
    return `the certificate of ${server}, or of its CA, has expired by the clock of this machine: renew it on the server`;
  if (code === "CERT_NOT_YET_VALID")
    return `the certificate of ${server} is not valid yet by the clock of this machine: compare the clocks`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const names = cert?.subjectaltname?.replaceAll(/(DNS|IP Address):/g, "") ?? cert?.subject?.CN ?? "another name";
    return `the certificate of ${server} is for ${names}, not ${host}: connect by a name that it has, or issue it for ${host}`;
  }
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE/.test(code) || /requires a valid client certificate/.test(message))
    return `${server} asks for a client certificate: set its certificate and key files`;
  if (/ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_(EXPIRED|REVOKED|UNKNOWN))/.test(code))
    return `${server} does not accept the client certificate (${message}): use one that its CA has signed`;
  if (
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(code) ||
    /does not support ('tls'|SSL)|wrong version number/.test(message)
  )
    return `${server} does not speak TLS there: use its TLS port, or a URL without TLS`;
  return undefined;
}

/** A server that expects TLS and got something else says so, or closes the connection. */
function explainPlain({ code, message }: Failure, server: string, url: string): string | undefined {
  if (code === "28000" && /no encryption/.test(message))
    return `${server} accepts only TLS from here: add sslmode=verify-full to the URL`;
  if (code === "08P01" && /unsupported startup parameter/.test(message))
    return `${server} is PgBouncer: add pgbouncer=true to the URL, and set the URL of PostgreSQL itself as the direct one`;
  const tlsScheme = new Map([
    ["amqp", "amqps"],
    ["redis", "rediss"],
  ]).get(parseServerUrl(url)?.scheme ?? "");
  if (tlsScheme && (code === "ECONNRESET" || /closed (the connection|unexpectedly)|socket closed/i.test(message)))
    return `${server} closed the connection before it answered: if it expects TLS there, use ${tlsScheme}://`;
  return undefined;
}
