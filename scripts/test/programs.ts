/**
 * Builds the programs that tests start as processes. A service that is started from its sources spends a second and a half
 * of CPU on finding, reading and stripping a thousand files; a built one spends half a second (docs/adr/0043).
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { root } from "./command.ts";
import { passed, type Result } from "./result.ts";

const sources = [
  "packages/cli/todoke.js",
  "packages/cli/testing/main.ts",
  "packages/service/testing/service.ts",
  "services/orders/workers/testing/sender-process.ts",
  "services/orders/simulator/main.ts",
  "flows/pipeline.ts",
  "chaos/process.ts",
];

export interface Programs extends Disposable {
  build(): Promise<Result>;
  /** How the tests learn of them. */
  env(): Record<string, string>;
}

export function openPrograms(): Programs {
  // Here, so that what is not built in is found as the sources find it.
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "todoke-programs-"));
  const list = join(folder, "programs.json");
  let isBuilt = false;
  return {
    async build() {
      const bundle = await rolldown({
        input: Object.fromEntries(sources.map((source) => [nameOf(source), join(root, source)])),
        platform: "node",
        external: [/^node:/, "pg-native", /\.node$/],
        plugins: [keepPlaces],
        logLevel: "silent",
      });
      await bundle.write({
        dir: folder,
        format: "esm",
        entryFileNames: "[name].mjs",
        chunkFileNames: "[name]-[hash].mjs",
      });
      await bundle.close();
      const built = sources.map((source) => [join(root, source), join(folder, `${nameOf(source)}.mjs`)]);
      writeFileSync(list, JSON.stringify(Object.fromEntries(built)));
      isBuilt = true;
      return passed;
    },
    env: () => (isBuilt ? { TODOKE_TEST_PROGRAMS: list } : {}),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const nameOf = (source: string): string => source.replace(/\.[jt]s$/, "").replaceAll("/", "-");

/** Migrations, scripts and pages are read from beside the source file: each module keeps the place that it had. */
const keepPlaces: Plugin = {
  name: "keep-places",
  transform(code, id) {
    if (id.startsWith("\0")) return undefined;
    const placed = code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href));
    const isOld = id.includes("node_modules") && /\b__(dirname|filename)\b/.test(code);
    const places = `const __dirname = ${JSON.stringify(dirname(id))}, __filename = ${JSON.stringify(id)};\n`;
    return isOld ? places + placed : placed;
  },
};
