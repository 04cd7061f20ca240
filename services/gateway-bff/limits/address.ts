/**
 * The address that a request comes from, as far as it can be trusted.
 *
 * Every proxy appends the address that called it to X-Forwarded-For. Our own proxies append the truth; a caller can write
 * anything to the left of it. So the address is counted from the right, by the number of our proxies. A caller with IPv6
 * can choose any address of a /64, so a /64 counts as one.
 */
import { isIP } from "node:net";

export interface RequestSource {
  /** The peer of the connection. */
  readonly socketAddress: string;
  readonly forwardedFor: string | undefined;
  /** How many of our own proxies a request passes. */
  readonly trustedProxies: number;
}

export function clientAddress({ socketAddress, forwardedFor, trustedProxies }: RequestSource): string {
  const forwarded = trustedProxies === 0 ? undefined : (forwardedFor ?? "").split(",").at(-trustedProxies);
  // Too few entries, or no address: the peer counts instead.
  return (forwarded !== undefined && toNetwork(forwarded)) || toNetwork(socketAddress) || "unknown";
}

/** Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711. */
const withPort = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::\d{1,5})?$/i;

/** The unit that counts as one caller: an IPv4 address or an IPv6 /64; undefined if the text is no address. */
function toNetwork(text: string): string | undefined {
  const trimmed = text.trim();
  const [, v6, v4] = withPort.exec(trimmed) ?? [];
  const [address = ""] = (v6 ?? v4 ?? trimmed).split("%", 1); // fe80::1%eth0 names one of our own interfaces.
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return toV6Network(parseV6(address));
    default:
      return undefined;
  }
}

function toV6Network(groups: readonly number[]): string {
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

/** Returns the eight groups of a well-formed IPv6 address. */
function parseV6(address: string): readonly number[] {
  const [head = [], tail] = address.split("::").map((half) => half.split(":").filter(Boolean).flatMap(parseGroup));
  if (tail === undefined) return head;
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

/** The last two groups may be written as IPv4. */
function parseGroup(part: string): readonly number[] {
  if (!part.includes(".")) return [Number.parseInt(part, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}
