/** Reads `nats://user:password@one:4222,two:4222?replicas=3&ca_file=/ca.pem`: the servers, TLS and streams of a URL. */
import { readFileSync } from "node:fs";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { type ConnectionOptions, credsAuthenticator } from "@nats-io/transport-node";
import { parseServerUrl, type ServerUrl, tlsFilesOf } from "@todoke/kernel/server-url";
import type { StreamDefaults } from "./streams.ts";

export interface NatsUrl {
  readonly client: ConnectionOptions;
  readonly streams: Partial<StreamDefaults>;
  readonly namespace: string | undefined;
}

export function parseNatsUrl(text: string): NatsUrl {
  const url = parseServerUrl(text);
  // The URL may contain a password, so the error does not repeat it.
  if (!url || url.hosts.length === 0) throw new Error("the URL of the NATS server is invalid");
  const get = (name: string) => url.parameters.get(name) || undefined;
  const [replicas, maxBytes] = [get("replicas"), get("max_bytes")];
  return {
    client: { servers: [...url.hosts], ...credentials(url), ...tls(url) },
    streams: {
      ...(replicas !== undefined && { replicas: Number(replicas) }),
      ...(maxBytes !== undefined && { maxBytes: Number(maxBytes) }),
    },
    namespace: get("namespace"),
  };
}

/** `nats://token@host` is a token. */
function credentials({ user, password, parameters }: ServerUrl): ConnectionOptions {
  const credsFile = parameters.get("creds_file");
  if (credsFile) return { authenticator: credsAuthenticator(readFileSync(credsFile)) };
  if (user === "") return {};
  return password === "" ? { token: user } : { user, pass: password };
}

/** With `tls://` or a file for TLS, a server without TLS is refused. With `nats://` alone the server decides. */
function tls(url: ServerUrl): ConnectionOptions {
  const { ca, cert, key } = tlsFilesOf(url);
  if (url.scheme !== "tls" && !ca && !cert) return {};
  // The client reads the files at every connection, so a renewed certificate needs no restart.
  const files = { ...(ca && { caFile: ca }), ...(cert && { certFile: cert }), ...(key && { keyFile: key }) };
  const options = { ...files, checkServerIdentity: identityCheck(url.hosts) };
  return { tls: options };
}

const hostOf = (host: string): string => new URL(`x://${host}`).hostname.replace(/^\[|\]$/g, "");

/**
 * The client gives Node no name if it connects to an IP address, and Node then accepts a certificate for "localhost". The
 * certificate must be for one of the addresses in the URL instead.
 */
function identityCheck(hosts: readonly string[]) {
  const names = hosts.map(hostOf);
  return (name: string, certificate: PeerCertificate): Error | undefined => {
    if (name !== "localhost" || names.includes("localhost")) return checkServerIdentity(name, certificate);
    const errors = names.map((each) => checkServerIdentity(each, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}
