/**
 * Errors of package-lock.json that do not show on the machine that wrote it.
 *
 * npm records only what its registry had: without a native tool's packages for other platforms, `npm ci` fails on a fresh
 * clone. It also blocks install scripts that are neither allowed nor denied.
 */

export const lockFiles = ["package-lock.json", "tools/package-lock.json"] as const;

/** An entry of the lock, as far as we read it. */
interface Locked {
  readonly engines?: unknown;
  readonly version?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Keyed by path: "" is the root, "packages/kernel" a workspace, "node_modules/pg" a package. */
export type Lock = Readonly<Record<string, Locked>>;

/** The part of a package.json that the lock repeats. */
export type Manifest = Pick<Locked, "dependencies" | "devDependencies" | "optionalDependencies">;

/** Whether a package may run its install script. */
export type AllowScripts = Readonly<Record<string, boolean>>;

export function missingOptional(lock: Lock): string[] {
  return Object.entries(lock).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !candidatePaths(path, name).some((candidate) => candidate in lock))
      .map((name) => `${path} lists ${name}, which is not in the lock: use a version whose packages are all available`),
  );
}

/** Where Node would find `name` from `path`: beside it, or in any folder above. */
function candidatePaths(path: string, name: string): string[] {
  const parts = path.split("/node_modules/");
  const above = parts.map((_, index) => parts.slice(0, index + 1).join("/node_modules/"));
  return ["", ...above].map((folder) => `${folder}${folder === "" ? "" : "/"}node_modules/${name}`);
}

export function boundToHost(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([, { resolved = "" }]) => resolved.includes("://"))
    .map(([path, { resolved }]) => `${path} is bound to ${resolved}`);
}

/** Without a checksum, npm accepts any content from a registry. */
export function unsealed(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([path, { link, integrity }]) => path.includes("node_modules/") && !link && integrity === undefined)
    .map(([path]) => `${path} has no checksum`);
}

/** An engines field makes npm warn about the installing Node. */
export function withEngines(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([path, { engines }]) => path.includes("node_modules/") && engines !== undefined)
    .map(([path]) => `${path} names its engines: run npm run lock`);
}

export function undecidedScripts(lock: Lock, allowScripts: AllowScripts): string[] {
  const withScript = Object.entries(lock).flatMap(([path, { hasInstallScript }]) =>
    hasInstallScript ? [path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)] : [],
  );
  return [
    ...withScript
      .filter((name) => !(name in allowScripts))
      .map((name) => `${name} has an install script: allow or deny it`),
    ...Object.keys(allowScripts)
      .filter((name) => !withScript.includes(name))
      .map((name) => `allowScripts names ${name}, which has no install script`),
  ];
}

/** `npm ci` refuses a lock that does not repeat every package.json. */
export function outOfStep(lock: Lock, manifests: Readonly<Record<string, Manifest>>): string[] {
  const wanted = (of: Manifest | undefined) =>
    JSON.stringify([of?.dependencies, of?.devDependencies, of?.optionalDependencies].map(sorted));
  return Object.entries(manifests)
    .filter(([path, manifest]) => wanted(lock[path]) !== wanted(manifest))
    .map(([path]) => `${path || "the root"}'s package.json and the lock differ: run npm run lock`);
}

const sorted = (record?: Readonly<Record<string, string>>) => Object.entries(record ?? {}).sort();
