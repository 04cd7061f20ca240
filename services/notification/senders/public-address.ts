/**
 * Public addresses of the Internet. A configured URL must not reach the internal network: loopback, private networks, the
 * metadata services of clouds (SSRF).
 */
import { BlockList, isIPv4, isIPv6 } from "node:net";

const notPublic = new BlockList();
// IANA's special-purpose registry for IPv4: all blocks that are not globally reachable.
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  notPublic.addSubnet(network, prefix, "ipv4");
// Within the public block of IPv6: tunnels to IPv4, and addresses for examples.
for (const [network, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  notPublic.addSubnet(network, prefix, "ipv6");

const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !notPublic.check(address, "ipv4");
  // All other IPv6 addresses (::1, fc00::/7, fe80::/10, mapped IPv4 such as ::ffff:127.0.0.1) are outside that block.
  return isIPv6(address) && globalUnicast.check(address, "ipv6") && !notPublic.check(address, "ipv6");
}
