import { expect, test } from "vitest";
import { planPublication, readIntegrity, sortByDependencies, type Tarball } from "./publication.ts";

const tarball = (name: string, ...dependencies: string[]): Tarball => {
  return { file: `${name}.tgz`, name, version: "0.2.0", integrity: `sha512-${name}`, dependencies, isLibrary: true };
};
const namesOf = (tarballs: readonly Tarball[]) => tarballs.map(({ name }) => name);
const tarballs = [tarball("cli", "points", "http"), tarball("points", "http"), tarball("http", "kernel", "fastify")];
const all = [...tarballs, tarball("kernel", "pg")];

test("a package is published after everything of ours that it depends on", () => {
  expect(namesOf(sortByDependencies(all))).toEqual(["kernel", "http", "points", "cli"]);
  expect(namesOf(sortByDependencies(all.toReversed()))).toEqual(["kernel", "http", "points", "cli"]);
});

test("packages that depend on each other are refused", () => {
  const circle = [tarball("a", "b"), tarball("b", "a")];
  expect(() => sortByDependencies(circle)).toThrow("a → b → a");
});

test("an interrupted release goes on with the packages that the registry lacks", async () => {
  const registry = new Map([
    ["kernel 0.2.0", "sha512-kernel"],
    ["http 0.2.0", "sha512-http"],
    ["cli 0.1.0", "sha512-former"],
  ]);
  const plan = await planPublication(all, async (name, version) => registry.get(`${name} ${version}`));
  expect(namesOf(plan.published)).toEqual(["kernel", "http"]);
  expect(namesOf(plan.missing)).toEqual(["points", "cli"]);
  expect(plan.faults).toEqual([]);
});

test("a version that is published with other contents is a fault", async () => {
  const { faults } = await planPublication(all, async (name) => (name === "points" ? "sha512-other" : undefined));
  expect(faults).toEqual([expect.stringContaining("points 0.2.0 is published with other contents")]);
});

test("npm's answer says whether a version is published", () => {
  expect(readIntegrity('"sha512-kernel"\n')).toBe("sha512-kernel");
  expect(readIntegrity("")).toBeUndefined();
  expect(readIntegrity('{ "error": { "code": "E404", "summary": "Not Found" } }')).toBeUndefined();
});

test("a registry that does not answer is not taken for one without the version", () => {
  expect(() => readIntegrity('{ "error": { "code": "ECONNREFUSED" } }')).toThrow("npm view failed (ECONNREFUSED)");
});
