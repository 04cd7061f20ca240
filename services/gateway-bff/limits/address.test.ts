import fc from "fast-check";
import { expect, test } from "vitest";
import { clientAddress } from "./address.ts";

const socketAddress = "192.0.2.9";
const behind = (trustedProxies: number, forwardedFor?: string) =>
  clientAddress({ socketAddress, forwardedFor, trustedProxies });

test("without a trusted proxy the peer address counts", () => {
  for (const spoofed of ["203.0.113.1", "203.0.113.1, 198.51.100.2", "::1", "garbage", ""])
    expect(behind(0, spoofed)).toBe(socketAddress);
});

test("behind proxies the address is the one that our outermost proxy saw", () => {
  expect(behind(1, "203.0.113.7")).toBe("203.0.113.7");
  expect(behind(1, "10.0.0.1, 127.0.0.1,203.0.113.7")).toBe("203.0.113.7");
  expect(behind(2, "6.6.6.6, 203.0.113.7, 198.51.100.3")).toBe("203.0.113.7");
  const fifty = Array.from({ length: 50 }, (_, n) => `10.0.0.${n}`).join(", ");
  expect(behind(1, `${fifty}, 203.0.113.7`)).toBe("203.0.113.7");
});

test("a caller cannot choose its address by sending X-Forwarded-For", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (sent) => {
      expect(behind(1, `${sent}, 203.0.113.7`)).toBe("203.0.113.7");
    }),
  );
});

test("a missing or malformed entry counts as the peer", () => {
  for (const [proxies, header] of [
    [1, undefined],
    [1, ""],
    [2, "203.0.113.7"],
    [1, "unknown"],
    [1, "203.0.113.7, _hidden"],
    [1, "1.2.3"],
    [1, "1.2.3.4.5"],
    [1, "999.1.1.1"],
    [1, "0x7f000001"],
    [1, "[2001:db8::1"],
    [1, "1::2::3"],
    [1, "x".repeat(8_000)],
  ] as const)
    expect(behind(proxies, header), String(header)).toBe(socketAddress);
});

test("an IPv6 address counts as its /64, in any spelling", () => {
  const network = "2001:db8:1:2::/64";
  for (const written of [
    "2001:db8:1:2::1",
    "2001:DB8:1:2:ffff:ffff:ffff:ffff",
    "2001:0db8:0001:0002:0:0:0:9",
    "[2001:db8:1:2::1]:4711",
    "[2001:db8:1:2::1]",
    "2001:db8:1:2::192.0.2.1",
  ])
    expect(behind(1, written), written).toBe(network);
  expect(behind(1, "2001:db8:1:3::1")).toBe("2001:db8:1:3::/64");
  expect(behind(1, "::1")).toBe("0:0:0:0::/64");
  expect(behind(1, "fe80::1%eth0")).toBe("fe80:0:0:0::/64");
});

test("an IPv4 address is the same with a port or mapped into IPv6", () => {
  for (const written of ["203.0.113.7", " 203.0.113.7 ", "203.0.113.7:51000", "::ffff:203.0.113.7", "::FFFF:cb00:7107"])
    expect(behind(1, written), written).toBe("203.0.113.7");
  expect(clientAddress({ socketAddress: "::ffff:203.0.113.7", forwardedFor: undefined, trustedProxies: 0 })).toBe(
    "203.0.113.7",
  );
});
