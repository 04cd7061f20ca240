/**
 * `npm run release:fixture`: keeps this version's packages in fixtures/released, without types and source maps, in place of the former
 * version's. The next migrations are tested against it (docs/adr/0079). `npm run release -- <version> --prepare` does it as well.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFixture } from "./release/fixture.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
execFileSync(process.execPath, ["scripts/pack.ts"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
console.log(writeFixture({ root, packages: join(root, "dist/packages"), version }));
