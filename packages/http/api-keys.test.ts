import { hash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { expect, test } from "vitest";
import { apiKeyAuthentication, readApiKeys } from "./api-keys.ts";

const entry = (holder: string, scopes: string, secret: string) =>
  `${holder}=${scopes}=${hash("sha256", secret, "hex")}`;
const read = (text: string) => readApiKeys({ TODOKE_API_KEYS: text });
const request = (authorization?: string) => ({ headers: { authorization } }) as FastifyRequest;

test("a key names its holder, and lets it do what its scopes say and nothing else", () => {
  const { keys, faults } = read(
    `${entry("shop", "entitlements:write+read", "tdk_a")}, ${entry("game", "read", "tdk_b")}`,
  );
  expect(faults).toEqual([]);
  const authenticate = apiKeyAuthentication(keys);
  expect(authenticate(request("Bearer tdk_a"), "entitlements:write")).toBe("shop");
  expect(authenticate(request("bearer tdk_b"), "read")).toBe("game");
  expect(() => authenticate(request("Bearer tdk_b"), "entitlements:write")).toThrow(
    expect.objectContaining({ status: 403, code: "forbidden" }),
  );
});

test.each([
  undefined,
  "",
  "tdk_a",
  "Basic tdk_a",
  "Bearer",
  "Bearer ",
  "Bearer tdk_x",
  "Bearer tdk_a tdk_a",
  `Bearer ${"x".repeat(300)}`,
])("nobody is let in with %o", (authorization) => {
  const authenticate = apiKeyAuthentication(read(entry("shop", "read", "tdk_a")).keys);
  expect(() => authenticate(request(authorization), "read")).toThrow(expect.objectContaining({ status: 401 }));
});

test("every fault of the setting is told, and none shows what was written", () => {
  const faultsOf = (text: string) => read(text).faults;
  expect(faultsOf("")).toEqual([expect.stringMatching(/^TODOKE_API_KEYS is not set: nobody could call/)]);
  const faults = faultsOf(
    `tdk_secret,${entry("shop", "read+fly", "a")},${entry("shop", "read", "b")},${entry("shop", "read", "c")}`,
  );
  expect(faults).toEqual([
    expect.stringMatching(/entry 1 cannot be read/),
    expect.stringMatching(/shop has unknown scopes: fly/),
    expect.stringMatching(/names shop twice/),
  ]);
  expect(faults.join()).not.toContain("tdk_secret");
});
