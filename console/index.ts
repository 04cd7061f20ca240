/**
 * The files of the console, for the gateway to serve. A published package has them in `dist`; a working copy builds them when
 * they are first needed, and again after a change of the sources (docs/adr/0120).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface ConsoleFiles {
  /** The page that every address below /console gets. */
  readonly page: string;
  /** Texts by their names, which change with their contents: "index-B1x2.js". */
  readonly assets: ReadonlyMap<string, string>;
}

const published = fileURLToPath(new URL("./dist", import.meta.url));

export async function loadConsole(): Promise<ConsoleFiles> {
  return readFiles(existsSync(published) ? published : await buildOnce());
}

async function buildOnce(): Promise<string> {
  const { buildIfChanged } = await import("./build.ts");
  return buildIfChanged();
}

function readFiles(folder: string): ConsoleFiles {
  const assets = join(folder, "assets");
  return {
    page: readFileSync(join(folder, "index.html"), "utf8"),
    assets: new Map(readdirSync(assets).map((name) => [name, readFileSync(join(assets, name), "utf8")])),
  };
}
