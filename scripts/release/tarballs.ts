/** The tarballs of `npm run pack`, as npm and the registry see them. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readIntegrity, type Tarball } from "./publication.ts";

/** Pinned: a new version of a checker may find new faults, and a release is no time to meet them. */
const publint = "publint@0.3.25";
const areTheTypesWrong = "@arethetypeswrong/cli@0.18.5";

export function readTarballs(folder: string): readonly Tarball[] {
  return globSync("*.tgz", { cwd: folder }).map((name) => readTarball(join(folder, name)));
}

function readTarball(file: string): Tarball {
  const manifest = JSON.parse(execFileSync("tar", ["-xzOf", file, "package/package.json"], { encoding: "utf8" }));
  return {
    file,
    name: manifest.name,
    version: manifest.version,
    integrity: `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`,
    dependencies: Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }),
    isLibrary: manifest.exports !== undefined,
  };
}

/** Faults that users of the package would meet: entries that do not resolve, types that do not fit. */
export function checkTarball({ file, name, isLibrary }: Tarball): readonly string[] {
  if (!isLibrary) return [];
  const checkers = [
    [publint, "--strict", file],
    [areTheTypesWrong, "--profile", "esm-only", file],
  ];
  return checkers.flatMap(([checker = "", ...args]) => {
    const { status, stdout, stderr } = spawnSync("npx", ["--yes", checker, ...args], { encoding: "utf8" });
    return status === 0 ? [] : [`${checker} does not accept ${name}. Correct what it reports:\n${stdout}${stderr}`];
  });
}

export async function findPublished(name: string, version: string): Promise<string | undefined> {
  const { stdout } = spawnSync("npm", ["view", `${name}@${version}`, "dist.integrity", "--json", "--prefer-online"], {
    encoding: "utf8",
  });
  return readIntegrity(stdout);
}

export function publish({ file }: Tarball): void {
  execFileSync("npm", ["publish", "--provenance", "--access", "public", file], { stdio: "inherit" });
}
