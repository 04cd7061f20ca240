/** The packages of a release as the tests of the next one run them: without types and source maps (docs/adr/0079). */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface FixtureOptions {
  readonly root: string;
  /** The folder of the packed tarballs. */
  readonly packages: string;
  readonly version: string;
}

const tar = (...args: readonly string[]) => execFileSync("tar", args, { stdio: ["ignore", "ignore", "inherit"] });

/** Replaces the former release in fixtures/released. */
export function writeFixture({ root, packages, version }: FixtureOptions): string {
  const released = join(root, "fixtures/released");
  const name = `todoke-${version}.tgz`;
  inTemporaryFolder((folder) => {
    unpackPackages(packages, version, folder);
    for (const former of globSync("todoke-*.tgz", { cwd: released })) rmSync(join(released, former));
    tar("-czf", join(released, name), "-C", folder, "node_modules");
  });
  return `fixtures/released/${name}`;
}

/** Compares files, not archives: an archive has the time at which it was made. */
export function checkFixture({ root, packages, version }: FixtureOptions): readonly string[] {
  const advice = "Run npm run release:fixture, and commit fixtures/released.";
  const [name, ...others] = readdirSync(join(root, "fixtures/released")).filter((each) => each.endsWith(".tgz"));
  if (name !== `todoke-${version}.tgz` || others.length > 0)
    return [`fixtures/released has not exactly todoke-${version}.tgz. ${advice}`];
  return inTemporaryFolder((folder) => {
    const [packed, kept] = [join(folder, "packed"), join(folder, "kept")];
    unpackPackages(packages, version, packed);
    mkdirSync(kept);
    tar("-xzf", join(root, "fixtures/released", name), "-C", kept);
    const different = findDifferentFiles(packed, kept);
    if (different.length === 0) return [];
    return [`fixtures/released/${name} is of another build: ${different.length} files differ. ${advice}`];
  });
}

function unpackPackages(packages: string, version: string, folder: string): void {
  for (const file of globSync("*.tgz", { cwd: packages })) {
    const name = file.replace(/^todoke-/, "").replace(`-${version}.tgz`, "");
    const target = join(folder, "node_modules/@todoke", name);
    mkdirSync(target, { recursive: true });
    const left = ["--exclude=*.map", "--exclude=*.d.ts"];
    tar("-xzf", join(packages, file), "-C", target, "--strip-components=1", ...left);
  }
}

function findDifferentFiles(a: string, b: string): readonly string[] {
  const [left, right] = [hashFiles(a), hashFiles(b)];
  return [...new Set([...left.keys(), ...right.keys()])].filter((name) => left.get(name) !== right.get(name));
}

function hashFiles(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length), createHash("sha256").update(readFileSync(path)).digest("hex")];
    }),
  );
}

function inTemporaryFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "todoke-release-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
