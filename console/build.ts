/** Builds the console with Vite into a cache, for `npm start` and the tests. `npm run pack` runs Vite by itself. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const cache = join(here, "../node_modules/.cache/todoke-console");
const sources = ["app/**/*.{ts,tsx,css,svg}", "index.html", "package.json", "vite.config.ts"];

/** The folder with the build of the sources as they are now. */
export async function buildIfChanged(): Promise<string> {
  const version = hashSources();
  const target = join(cache, version);
  if (existsSync(target)) return target;
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "new-"));
  // Imported here, because only a working copy has it.
  const { build } = await import("vite");
  await build({
    configFile: join(here, "vite.config.ts"),
    logLevel: "warn",
    build: { outDir: folder, emptyOutDir: true },
  });
  removeOthers(version);
  try {
    renameSync(folder, target);
  } catch (error) {
    // Another process was faster, with the same result.
    if (!existsSync(target)) throw error;
    rmSync(folder, { recursive: true });
  }
  return target;
}

function hashSources(): string {
  const hash = createHash("sha256");
  for (const file of globSync(sources, { cwd: here }).sort())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(here, file)))
      .update("\0");
  return hash.digest("hex").slice(0, 16);
}

/** Earlier builds. Processes that serve one have read it already. */
function removeOthers(version: string): void {
  const isBuild = (name: string) => /^[0-9a-f]{16}$/.test(name) && name !== version;
  for (const name of readdirSync(cache).filter(isBuild)) rmSync(join(cache, name), { recursive: true, force: true });
}
