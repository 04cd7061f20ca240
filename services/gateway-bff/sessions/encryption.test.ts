import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openEncryption } from "./encryption.ts";

const [oldSecret, newSecret] = [randomBytes(32), randomBytes(32)];

test("a sealed value opens only under its own name", () => {
  const encryption = openEncryption([newSecret]);
  const sealed = encryption.seal({ accessToken: "a", of: ["\u{1f3ae}", 1, null] }, "session-1");
  expect(encryption.open(sealed, "session-1")).toEqual({ accessToken: "a", of: ["\u{1f3ae}", 1, null] });
  expect(encryption.open(sealed, "session-2")).toBeUndefined();
  expect(encryption.open(sealed, "")).toBeUndefined();
});

test("a sealed value with a changed or missing byte does not open", () => {
  const encryption = openEncryption([newSecret]);
  const sealed = encryption.seal("a secret", "name");
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(encryption.open(changed, "name")).toBeUndefined();
    expect(encryption.open(sealed.subarray(0, at), "name")).toBeUndefined();
  }
});

test("the first secret seals, all secrets open", () => {
  const before = openEncryption([oldSecret]).seal("old", "name");
  const both = openEncryption([newSecret, oldSecret]);
  expect(both.open(before, "name")).toBe("old");
  expect(openEncryption([newSecret]).open(both.seal("new", "name"), "name")).toBe("new");
  expect(openEncryption([newSecret]).open(before, "name")).toBeUndefined();
});

test("sealing a value twice gives different bytes that show neither value nor secret", () => {
  const encryption = openEncryption([newSecret]);
  const all = Array.from({ length: 100 }, () => encryption.seal("the same value", "name").toString("latin1"));
  expect(new Set(all).size).toBe(100);
  expect(all.join()).not.toContain("the same value");
  expect(all.join()).not.toContain(newSecret.toString("latin1").slice(0, 4));
});

test("values that are too large and malformed secrets are refused", () => {
  expect(() => openEncryption([])).toThrow("need a secret");
  expect(() => openEncryption([newSecret, Buffer.from("short")])).toThrow("32 bytes");
  expect(() => openEncryption([newSecret]).seal("x".repeat(65 * 1024), "name")).toThrow(RangeError);
});
