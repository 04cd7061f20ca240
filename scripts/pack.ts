/**
 * `npm run pack`: builds every package as npm publishes it, into dist/packages: JavaScript with types and source maps, no tests.
 * Development runs the TypeScript as it is and needs none of this (docs/adr/0012, docs/adr/0067).
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { findPackages, stagePackage } from "./pack/stage.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = resolve(root, process.argv[2] ?? "dist");
const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

rmSync(dist, { recursive: true, force: true });
const tarballs = join(dist, "packages");
mkdirSync(tarballs, { recursive: true });
run(join(root, "node_modules/.bin/tsc"), ["-p", "scripts/pack/tsconfig.json", "--outDir", join(dist, "build")]);
const staged = findPackages(root).map((folder) =>
  stagePackage({ root, folder, build: join(dist, "build"), target: join(dist, "staged") }),
);
run(join(root, "node_modules/.bin/vite"), [
  "build",
  "console",
  "--outDir",
  join(dist, "staged/console/dist"),
  "--emptyOutDir",
]);
const packed = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", tarballs, ...staged]));
for (const { filename, files, size } of packed)
  console.log(`${filename}   ${files.length} files, ${Math.round(size / 1024)} KB`);
