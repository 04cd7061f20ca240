import { expect, test } from "vitest";
import { readLimits } from "./settings.ts";

const read = (env: Record<string, string>) => {
  const faults: string[] = [];
  return { limits: readLimits(env, faults), faults };
};

test("without settings the limits are those that the README names", () => {
  const { limits, faults } = read({});
  expect(faults).toEqual([]);
  expect(limits).toEqual({
    classes: {
      login: { name: "login", quota: 20, windowMs: 60_000 },
      logout: { name: "logout", quota: 60_000, windowMs: 60_000 },
      read: { name: "read", quota: 600, windowMs: 60_000 },
      write: { name: "write", quota: 120, windowMs: 60_000 },
      bulk: { name: "bulk", quota: 30, windowMs: 60_000 },
    },
    address: { name: "address", quota: 6_000, windowMs: 60_000 },
    trustedProxies: 0,
    inFlightMax: 500,
  });
});

test("each limit and the number of proxies can be set", () => {
  const { limits, faults } = read({
    GATEWAY_BFF_LIMIT_LOGIN: "3/3600s",
    GATEWAY_BFF_TRUSTED_PROXIES: "2",
    GATEWAY_BFF_LIMIT_IN_FLIGHT: "7",
  });
  expect(faults).toEqual([]);
  expect(limits.classes.login).toEqual({ name: "login", quota: 3, windowMs: 3_600_000 });
  expect([limits.trustedProxies, limits.inFlightMax]).toEqual([2, 7]);
});

test("what cannot be read is a fault, all of them at once, each with what is wanted", () => {
  const wrong = ["600", "600/60", "0/60s", "600/0s", "1000001/60s", "600/3601s", "-1/60s", "1e3/60s", "600/60s "];
  for (const text of wrong) {
    const { faults } = read({ GATEWAY_BFF_LIMIT_READ: text, GATEWAY_BFF_TRUSTED_PROXIES: "many" });
    expect(faults, text).toEqual([
      `GATEWAY_BFF_LIMIT_READ is ${JSON.stringify(text)} and should look like 600/60s: 1 to 1000000 calls in 1 to 3600 seconds`,
      'GATEWAY_BFF_TRUSTED_PROXIES is "many" and should be a whole number from 0 to 16',
    ]);
  }
});
