/**
 * What can be wrong with package-lock.json although it works on the machine that wrote it.
 *
 * npm writes down only what its registry had: where a native tool's packages for other platforms were missing, `npm ci`
 * fails on a fresh clone. And it blocks the install scripts of packages that nobody has decided about.
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

/** Keyed by place: "" is the root, "packages/kernel" a workspace, "node_modules/pg" a package. */
export type Lock = Readonly<Record<string, Locked>>;

/** The part of a package.json that the lock repeats. */
export type Manifest = Pick<Locked, "dependencies" | "devDependencies" | "optionalDependencies">;

/** Whether a package may run its install script: true, or decidedly not. */
export type AllowScripts = Readonly<Record<string, boolean>>;

export function missingOptional(lock: Lock): string[] {
  return Object.entries(lock).flatMap(([place, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !places(place, name).some((candidate) => candidate in lock))
      .map((name) => `${place} lists ${name}, which is not in the lock: take a version whose packages can all be had`),
  );
}

/** Where Node would find `name` from `place`: beside it, or in any folder above. */
function places(place: string, name: string): string[] {
  const parts = place.split("/node_modules/");
  const above = parts.map((_, index) => parts.slice(0, index + 1).join("/node_modules/"));
  return ["", ...above].map((folder) => `${folder}${folder === "" ? "" : "/"}node_modules/${name}`);
}

export function boundToHost(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([, { resolved = "" }]) => resolved.includes("://"))
    .map(([place, { resolved }]) => `${place} is bound to ${resolved}`);
}

/** Without its checksum a package is whatever a registry hands out. */
export function unsealed(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([place, { link, integrity }]) => place.includes("node_modules/") && !link && integrity === undefined)
    .map(([place]) => `${place} has no checksum`);
}

/** Each would make npm warn about a Node that only installs. */
export function withEngines(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([place, { engines }]) => place.includes("node_modules/") && engines !== undefined)
    .map(([place]) => `${place} names its engines: run npm run lock`);
}

export function undecidedScripts(lock: Lock, allowScripts: AllowScripts): string[] {
  const withScript = Object.entries(lock).flatMap(([place, { hasInstallScript }]) =>
    hasInstallScript ? [place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)] : [],
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
    .filter(([place, manifest]) => wanted(lock[place]) !== wanted(manifest))
    .map(([place]) => `${place || "the root"}'s package.json and the lock differ: run npm run lock`);
}

const sorted = (record?: Readonly<Record<string, string>>) => Object.entries(record ?? {}).sort();
