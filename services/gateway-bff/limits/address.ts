/**
 * Whose address a request comes from, as far as it can be believed.
 *
 * Every proxy adds the address that it was called from at the right end of X-Forwarded-For. What our own proxies added is
 * true, and all to the left of it was written by whoever called: so it is counted from the right, as many as we have
 * proxies, and no further. Of IPv6 a caller has a whole /64 to choose from, and counts as one.
 */
import { isIP } from "node:net";

export interface Origin {
  /** Where the connection comes from. */
  readonly socketAddress: string;
  readonly forwardedFor: string | undefined;
  /** How many proxies of ours a request passes. */
  readonly trustedProxies: number;
}

export function addressOf({ socketAddress, forwardedFor, trustedProxies }: Origin): string {
  const told = trustedProxies === 0 ? undefined : (forwardedFor ?? "").split(",").at(-trustedProxies);
  // Too few entries, or something that is no address: whoever we are connected to answers for it.
  return (told !== undefined && network(told)) || network(socketAddress) || "unknown";
}

/** Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711. */
const withPort = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::\d{1,5})?$/i;

/** What counts as one caller: an address of IPv4, or a /64 of IPv6; undefined when the text is no address. */
function network(text: string): string | undefined {
  const trimmed = text.trim();
  const [, v6, v4] = withPort.exec(trimmed) ?? [];
  const [address = ""] = (v6 ?? v4 ?? trimmed).split("%", 1); // fe80::1%eth0 names one of our own interfaces.
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return networkOfV6(groupsOf(address));
    default:
      return undefined;
  }
}

function networkOfV6(groups: readonly number[]): string {
  const isMappedV4 = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMappedV4)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of a well-formed IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const [head = [], tail] = address.split("::").map((half) => half.split(":").filter(Boolean).flatMap(groupsIn));
  if (tail === undefined) return head;
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

/** The last two groups may be written as IPv4. */
function groupsIn(part: string): readonly number[] {
  if (!part.includes(".")) return [Number.parseInt(part, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
