/** Parses `scheme://user:password@one:4222,two:4222/path?parameter=value`. The URL class accepts one host only. */

export interface ServerUrl {
  /** "nats", "amqps" */
  readonly scheme: string;
  readonly user: string;
  readonly password: string;
  /** "one:4222", "[::1]:4222", or without a port. Empty if the URL has no host. */
  readonly hosts: readonly string[];
  /** "/name", or empty. */
  readonly path: string;
  readonly parameters: URLSearchParams;
}

const form = /^([a-z][a-z0-9+]*):\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/i;

/** Returns undefined if it is not a URL. An error would have to hide the password. */
export function parseServerUrl(text: string): ServerUrl | undefined {
  // Each server of a list may repeat the scheme: "nats://one,nats://two".
  const [, scheme = "", authority = "", path = "", query = ""] = form.exec(text.replace(/,[a-z]+:\/\//gi, ",")) ?? [];
  if (scheme === "") return undefined;
  const at = authority.lastIndexOf("@");
  const [user = "", ...password] = authority.slice(0, Math.max(at, 0)).split(":");
  const hosts = authority.slice(at + 1).split(",");
  const isEmpty = hosts.length === 1 && hosts[0] === "";
  if (!isEmpty && !hosts.every(isHost)) return undefined;
  try {
    return {
      scheme: scheme.toLowerCase(),
      user: decodeURIComponent(user),
      password: decodeURIComponent(password.join(":")),
      hosts: isEmpty ? [] : hosts,
      path: path === "/" ? "" : path,
      parameters: new URLSearchParams(query),
    };
  } catch {
    return undefined; // a % without two digits
  }
}

const isHost = (host: string): boolean =>
  host !== "" && URL.canParse(`x://${host}`) && new URL(`x://${host}`).host === host;

/** Without password, token and parameters, for output: `postgres://todoke@db.example:5432/todoke`. */
export function formatServerUrl(text: string): string {
  const url = parseServerUrl(text);
  if (!url) return "(not a URL)";
  // NATS takes a name without a password for a token.
  const isToken = !url.password && /^(nats|tls)$/.test(url.scheme);
  const user = url.user === "" || isToken ? "" : `${encodeURIComponent(url.user)}@`;
  return `${url.scheme}://${user}${url.hosts.join()}${url.path}`;
}

/** Adds those that have a value. */
export function addParameters(url: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) => (value ? [[name, value]] : []));
  if (given.length === 0) return url;
  return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams(given)}`;
}
