/** Puts together the folder of a package as npm publishes it: built JavaScript, assets, README, licence and a package.json. */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";

type Manifest = Readonly<Record<string, unknown>> & {
  readonly name: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
};

interface StageOptions {
  readonly root: string;
  /** "packages/kernel" */
  readonly folder: string;
  /** Where tsc has written its output. */
  readonly build: string;
  readonly target: string;
}

/** All workspaces, as git knows them. */
export const findPackages = (root: string): readonly string[] =>
  listFiles(
    root,
    ...["packages/*", "services/*", "console", "examples/*"].map((folder) => `${folder}/package.json`),
  ).map((file) => dirname(file));

/** Test code is not published. */
const isForTests = (path: string): boolean => /\.test\.ts$|(^|\/)testing|(^|\/)conformance/.test(path);
/** Read by our own tools only. A package has the built console instead of its sources. */
const isOwn = (path: string): boolean =>
  /(^|\/)package\.json$|\.proto$|^examples\/.*tsconfig\.json$|buf\.yaml$|\.binpb$|^console\/(app\/|build\.ts|index\.html|tsconfig\.json|vite\.config\.ts)/.test(
    path,
  );

export function stagePackage({ root, folder, build, target }: StageOptions): string {
  const staged = join(target, folder);
  for (const file of listFiles(root, folder).filter((each) => !isForTests(each) && !isOwn(each))) {
    const name = file.slice(folder.length + 1);
    if (isForBrowsers(file)) stripTypes(join(root, file), join(staged, name.replace(/\.ts$/, ".js")));
    else if (!name.endsWith(".ts")) copy(join(root, file), join(staged, name));
    else for (const built of builtNames(name)) copy(join(build, folder, built), join(staged, built));
  }
  copy(join(root, "LICENSE"), join(staged, "LICENSE"));
  const manifest = readJson<Manifest>(join(root, folder, "package.json"));
  // A package without side effects is for browsers too: it uses none of these functions, and a bundler would drop the import.
  if (manifest.sideEffects !== false) {
    copy(join(root, "scripts/pack/polyfills.js"), join(staged, "polyfills.js"));
    for (const file of entryFiles(manifest)) loadPolyfillsFirst(staged, file);
  }
  const release = readJson<Manifest & { readonly version: string }>(join(root, "package.json"));
  writeFileSync(join(staged, "package.json"), `${JSON.stringify(toPublished(manifest, release, folder), null, 2)}\n`);
  return staged;
}

/** The JavaScript files by which other packages, or a shell, enter the package. */
function entryFiles({ exports = {}, bin = {} }: Manifest): readonly string[] {
  const exported = Object.values(exports).filter((file) => !isForTests(file.slice(2)));
  return [...exported, ...Object.values(bin).map(() => "./main.ts")].map((file) => file.replace(/\.ts$/, ".js"));
}

/** On the first line, so that the lines of the source map stay right. */
function loadPolyfillsFirst(staged: string, file: string): void {
  const path = join(staged, file);
  const polyfills = `${"../".repeat(file.split("/").length - 2) || "./"}polyfills.js`;
  writeFileSync(path, `import "${polyfills}"; ${readFileSync(path, "utf8")}`);
}

const builtNames = (name: string): readonly string[] =>
  [".js", ".js.map", ".d.ts"].map((end) => name.replace(/\.ts$/, end));

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  if (from.endsWith(".js")) writeFileSync(to, rewriteNames(readFileSync(from, "utf8")));
  else copyFileSync(from, to);
}

/** The types of the DOM, which such files use, are not for the rest. */
const isForBrowsers = (file: string): boolean => /^examples\/[^/]+\/page\/.*\.ts$/.test(file);

function stripTypes(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const script = stripTypeScriptTypes(readFileSync(from, "utf8"));
  writeFileSync(to, script.replace(/ from "(\.\/[\w-]+)\.ts"/g, ' from "$1.js"'));
}

/** The name of a TypeScript file that a program or a process is started from becomes that of the built file. */
function rewriteNames(script: string): string {
  return script.replace(/\b(import\(|new URL\()"(\.{1,2}\/[\w/.-]+)\.ts"/g, '$1"$2.js"');
}

/** Every package, and its dependencies on others of ours, have the version of the root. */
function toPublished(
  { private: _private, devDependencies = {}, scripts: _scripts, ...manifest }: Manifest,
  { version, repository, optionalDependencies }: Readonly<Record<string, unknown>>,
  folder: string,
): object {
  // Our declarations refer to those of a library, so its types are needed where ours are.
  const types = Object.entries(devDependencies).filter(([name]) => name.startsWith("@types/"));
  const dependencies = [...Object.entries(manifest.dependencies ?? {}), ...types].map(([name, range]) => [
    name,
    name.startsWith("@todoke/") ? version : range,
  ]);
  return {
    ...manifest,
    version,
    engines: { node: ">=20.19" },
    ...(repository !== undefined && { repository: { ...(repository as object), directory: folder } }),
    ...(manifest.exports && { exports: toBuiltExports(manifest.exports) }),
    dependencies: Object.fromEntries(dependencies),
    // The command brings the Node that the services run on.
    ...(manifest.bin && { optionalDependencies }),
  };
}

function toBuiltExports(exports: Readonly<Record<string, string>>): Record<string, object | string> {
  const published = Object.entries(exports).filter(([, file]) => !isForTests(file.slice(2)));
  return {
    ...Object.fromEntries(
      published.map(([path, file]) => {
        const built = file.replace(/\.ts$/, "");
        return [path, { types: `${built}.d.ts`, default: `${built}.js` }];
      }),
    ),
    "./package.json": "./package.json",
  };
}

const readJson = <T>(file: string): T => JSON.parse(readFileSync(file, "utf8"));

function listFiles(root: string, ...paths: readonly string[]): readonly string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", ...paths], {
    cwd: root,
    encoding: "utf8",
  });
  return listed.split("\n").filter((file) => file !== "" && existsSync(join(root, file)));
}
