/** The files for TLS that a URL names: an own CA, and a certificate with its key for servers that ask for one. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { ServerUrl } from "./parse.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

type Part = keyof TlsFiles;

/** The names of libpq for PostgreSQL; for the others `ca_file`, `cert_file`, `key_file`. */
export function tlsFilesOf({ parameters }: Pick<ServerUrl, "parameters">): TlsFiles {
  const get = (...names: string[]) => names.map((name) => parameters.get(name)).find((path) => path) ?? undefined;
  return { ca: get("sslrootcert", "ca_file"), cert: get("sslcert", "cert_file"), key: get("sslkey", "key_file") };
}

/** Their contents, as options of `node:tls`. */
export function readTlsFiles(files: TlsFiles): { ca?: string; cert?: string; key?: string } {
  const parts = (["ca", "cert", "key"] as const).filter((part) => files[part]);
  return Object.fromEntries(parts.map((part) => [part, readFileSync(files[part] ?? "", "utf8")]));
}

/** The option of `node:tls` that tells the server which of its names is meant. It must not be an IP address. */
export const serverName = (host: string): { servername?: string } => (isIP(host) === 0 ? { servername: host } : {});

/** Every error of the files, a sentence each. `nameOf` names the setting of a file. */
export function checkTlsFiles(files: TlsFiles, nameOf: (part: Part) => string): string[] {
  const errors: string[] = [];
  const ca = read("ca", (text) => new X509Certificate(text), "a certificate in PEM form");
  const cert = read("cert", (text) => new X509Certificate(text), "a certificate in PEM form");
  const key = read("key", (text) => createPrivateKey(text), "a private key in PEM form without a passphrase");
  if (files.cert && !files.key) errors.push(`${nameOf("cert")} is set without ${nameOf("key")}: set both`);
  if (files.key && !files.cert) errors.push(`${nameOf("key")} is set without ${nameOf("cert")}: set both`);
  if (cert && key && !cert.checkPrivateKey(key))
    errors.push(`${nameOf("key")}: ${files.key} is not the key of the certificate in ${files.cert}`);
  for (const [part, certificate] of [["ca", ca] as const, ["cert", cert] as const]) {
    if (certificate && certificate.validToDate.getTime() < Date.now())
      errors.push(`${nameOf(part)}: the certificate in ${files[part]} expired on ${certificate.validTo}: renew it`);
  }
  return errors;

  function read<T>(part: Part, parse: (text: string) => T, form: string): T | undefined {
    const path = files[part];
    if (!path) return undefined;
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (error) {
      errors.push(`${nameOf(part)}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? error})`);
      return undefined;
    }
    try {
      return parse(text);
    } catch {
      errors.push(`${nameOf(part)}: ${path} does not contain ${form}`);
      return undefined;
    }
  }
}
