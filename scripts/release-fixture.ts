/**
 * `npm run release:fixture`: keeps this version's packages in fixtures/released, without types and source maps, in place of the former
 * version's. Run it for each release: the next migrations are tested against it (docs/adr/0079).
 */
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const folder = mkdtempSync(join(tmpdir(), "todoke-release-"));
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });

try {
  run(process.execPath, "scripts/pack.ts", join(folder, "dist"));
  const packages = join(folder, "dist/packages");
  for (const file of globSync("*.tgz", { cwd: packages })) {
    const name = file.replace(/^todoke-/, "").replace(`-${version}.tgz`, "");
    const target = join(folder, "node_modules/@todoke", name);
    mkdirSync(target, { recursive: true });
    run(
      "tar",
      "-xzf",
      join(packages, file),
      "-C",
      target,
      "--strip-components=1",
      "--exclude=*.map",
      "--exclude=*.d.ts",
    );
  }
  const released = join(root, "fixtures/released");
  for (const former of globSync("todoke-*.tgz", { cwd: released })) rmSync(join(released, former));
  run("tar", "-czf", join(released, `todoke-${version}.tgz`), "-C", folder, "node_modules");
  console.log(`fixtures/released/todoke-${version}.tgz`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
