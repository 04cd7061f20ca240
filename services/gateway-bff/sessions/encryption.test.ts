import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openEncryption } from "./encryption.ts";

const [oldSecret, newSecret] = [randomBytes(32), randomBytes(32)];

test("what was sealed is opened under its own name, and under no other", () => {
  const encryption = openEncryption([newSecret]);
  const sealed = encryption.seal({ accessToken: "a", of: ["\u{1f3ae}", 1, null] }, "session-1");
  expect(encryption.open(sealed, "session-1")).toEqual({ accessToken: "a", of: ["\u{1f3ae}", 1, null] });
  expect(encryption.open(sealed, "session-2")).toBeUndefined();
  expect(encryption.open(sealed, "")).toBeUndefined();
});

test("whichever byte is changed, or cut off, nothing is opened", () => {
  const encryption = openEncryption([newSecret]);
  const sealed = encryption.seal("a secret", "name");
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(encryption.open(changed, "name")).toBeUndefined();
    expect(encryption.open(sealed.subarray(0, at), "name")).toBeUndefined();
  }
});

test("the first secret seals and all open; without the one that sealed, nothing is opened", () => {
  const before = openEncryption([oldSecret]).seal("old", "name");
  const both = openEncryption([newSecret, oldSecret]);
  expect(both.open(before, "name")).toBe("old");
  expect(openEncryption([newSecret]).open(both.seal("new", "name"), "name")).toBe("new");
  expect(openEncryption([newSecret]).open(before, "name")).toBeUndefined();
});

test("the same value is never sealed twice in the same way, and shows neither itself nor the secret", () => {
  const encryption = openEncryption([newSecret]);
  const all = Array.from({ length: 100 }, () => encryption.seal("the same value", "name").toString("latin1"));
  expect(new Set(all).size).toBe(100);
  expect(all.join()).not.toContain("the same value");
  expect(all.join()).not.toContain(newSecret.toString("latin1").slice(0, 4));
});

test("what is too large, and secrets that are none, are refused", () => {
  expect(() => openEncryption([])).toThrow("need a secret");
  expect(() => openEncryption([newSecret, Buffer.from("short")])).toThrow("32 bytes");
  expect(() => openEncryption([newSecret]).seal("x".repeat(65 * 1024), "name")).toThrow(RangeError);
});
