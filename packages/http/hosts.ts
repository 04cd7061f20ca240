/**
 * Which Host headers a listener accepts. A web page can let its own name resolve to our address (DNS rebinding), and its
 * scripts then reach a service on loopback or in the same network as if it were their own site. The header still has the
 * name of the page, so every name that is not ours is rejected.
 *
 * Addresses, `localhost`, names without a dot and names below `.internal` (reserved for private networks) are always accepted:
 * no page on the internet can have them. So probes by address, and calls between containers, need no setting.
 */
import { isIP } from "node:net";
import { hostname } from "node:os";
import { type Env, readList } from "./env.ts";

export type IsOurHost = (header: string | undefined) => boolean;

const form = /^(?:\[([0-9a-f:.]{2,45})\]|([^:[\]]{1,255}))(?::\d{0,5})?$/i;

/** `names` are host names, or `*.example.com` for every name below that one. */
export function ourHosts(names: readonly string[]): IsOurHost {
  const lower = [hostname(), ...names].map((name) => name.toLowerCase());
  const exact = new Set(lower);
  const endings = [
    ".localhost",
    ".internal",
    ...lower.filter((name) => name.startsWith("*.")).map((name) => name.slice(1)),
  ];
  let lastOurs: string | undefined;

  function isOurs(header: string): boolean {
    const [, v6, name = ""] = form.exec(header) ?? [];
    if (v6 !== undefined) return isIP(v6) === 6;
    const host = name.toLowerCase().replace(/\.$/, "");
    if (isIP(host) === 4 || exact.has(host)) return true;
    return /^[a-z0-9_-]+$/.test(host) || endings.some((ending) => host.endsWith(ending));
  }

  return (header) => {
    // HTTP/1.0 has no Host; every browser sends one.
    if (header === undefined || header === lastOurs) return true;
    if (!isOurs(header)) return false;
    lastOurs = header;
    return true;
  };
}

const allowed = /^(\*\.)?[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/i;

/** TODOKE_ALLOWED_HOSTS: host names of this process, besides those in other settings. */
export function readAllowedHosts(env: Env, errors: string[]): readonly string[] {
  const names = readList(env.TODOKE_ALLOWED_HOSTS);
  for (const name of names.filter((each) => !allowed.test(each)))
    errors.push(
      `TODOKE_ALLOWED_HOSTS: ${JSON.stringify(name)} should be a host name without a port, as account.example.com, ` +
        "or *.example.com for all below it",
    );
  return names;
}

/** The host name in a URL of the settings; none if it is not set or not a URL. */
export function hostNameIn(url: string | undefined): readonly string[] {
  const name = URL.parse(url ?? "")?.hostname;
  return name ? [name] : [];
}
