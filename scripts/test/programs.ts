/**
 * Builds the programs that tests start as processes. A service that is started from its sources spends a second and a half
 * of CPU on finding, reading and stripping a thousand files; a built one spends half a second (docs/adr/0043).
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import type { ProgramVariant } from "@todoke/kernel/testing";
import { type Plugin, rolldown } from "rolldown";
import { failpoints, patchesFor, patchSource } from "../../chaos/patches/index.ts";
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

/** Those that tests kill or stop at failpoints. */
const withFailpoints = ["packages/cli/todoke.js", "chaos/process.ts"];

const variants: Readonly<Record<ProgramVariant, { readonly sources: readonly string[]; readonly plugins: Plugin[] }>> =
  {
    plain: { sources, plugins: [] },
    failpoints: { sources: withFailpoints, plugins: [patch({ claimsOnly: false })] },
    "claims-only": { sources: withFailpoints, plugins: [patch({ claimsOnly: true })] },
  };

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
      const names = Object.keys(variants) as ProgramVariant[];
      const built = await Promise.all(names.map(async (name) => [name, await buildVariant(name, folder)] as const));
      writeFileSync(list, JSON.stringify(Object.fromEntries(built)));
      isBuilt = true;
      return passed;
    },
    env: () => (isBuilt ? { TODOKE_TEST_PROGRAMS: list } : {}),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns the built files by their sources. */
async function buildVariant(variant: ProgramVariant, folder: string): Promise<Record<string, string>> {
  const { sources, plugins } = variants[variant];
  const dir = join(folder, variant);
  const bundle = await rolldown({
    input: Object.fromEntries(sources.map((source) => [nameOf(source), join(root, source)])),
    platform: "node",
    // The console is built by Vite, in a process that looks at it first.
    external: [/^node:/, "pg-native", "vite", /\.node$/],
    plugins: [...plugins, keepPlaces],
    logLevel: "silent",
  });
  await bundle.write({ dir, format: "esm", entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  await bundle.close();
  return Object.fromEntries(sources.map((source) => [join(root, source), join(dir, `${nameOf(source)}.mjs`)]));
}

const nameOf = (source: string): string => source.replace(/\.[jt]s$/, "").replaceAll("/", "-");

/** Migrations, scripts and pages are read from beside the source file: each module keeps the place that it had. */
const keepPlaces: Plugin = {
  name: "keep-places",
  transform(code, id) {
    if (id.startsWith("\0")) return undefined;
    const placed = code
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", JSON.stringify(dirname(id)));
    const isOld = id.includes("node_modules") && /\b__(dirname|filename)\b/.test(code);
    const places = `const __dirname = ${JSON.stringify(dirname(id))}, __filename = ${JSON.stringify(id)};\n`;
    return isOld ? places + placed : placed;
  },
};

/** Patches every failpoint into the sources, as chaos/patches/instrument.ts does while they are loaded. */
function patch({ claimsOnly }: { readonly claimsOnly: boolean }): Plugin {
  const patches = patchesFor({ failpoints, claimsOnly });
  return {
    name: "failpoints",
    transform: (code, id) => patchSource(relative(root, id).replaceAll("\\", "/"), code, patches),
  };
}
