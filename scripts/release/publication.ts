/** Decides which tarballs are published, and in which order. */

export interface Tarball {
  readonly file: string;
  readonly name: string;
  readonly version: string;
  /** As the registry has it: "sha512-…". */
  readonly integrity: string;
  readonly dependencies: readonly string[];
  /** Whether other programs import it. The command is only run. */
  readonly isLibrary: boolean;
}

/** Dependencies first: an installation during the release never gets a package whose dependencies are missing. */
export function sortByDependencies(tarballs: readonly Tarball[]): readonly Tarball[] {
  const byName = new Map(tarballs.map((tarball) => [tarball.name, tarball]));
  const sorted = new Set<Tarball>();
  function add(tarball: Tarball, path: readonly string[]): void {
    if (sorted.has(tarball)) return;
    const names = [...path, tarball.name];
    if (path.includes(tarball.name)) throw new Error(`Packages depend on each other in a circle: ${names.join(" → ")}`);
    for (const name of [...tarball.dependencies].sort()) {
      const dependency = byName.get(name);
      if (dependency !== undefined) add(dependency, names);
    }
    sorted.add(tarball);
  }
  for (const name of [...byName.keys()].sort()) add(byName.get(name) as Tarball, []);
  return [...sorted];
}

/** The integrity of what the registry has under this name and version, or undefined if it has nothing. */
export type FindPublished = (name: string, version: string) => Promise<string | undefined>;

interface Plan {
  readonly missing: readonly Tarball[];
  readonly published: readonly Tarball[];
  readonly faults: readonly string[];
}

/** Every package is looked up before the first is published, so that a version with other contents stops the whole release. */
export async function planPublication(tarballs: readonly Tarball[], findPublished: FindPublished): Promise<Plan> {
  const [missing, published]: [Tarball[], Tarball[]] = [[], []];
  const faults: string[] = [];
  for (const tarball of sortByDependencies(tarballs)) {
    const { name, version, integrity } = tarball;
    const found = await findPublished(name, version);
    if (found === undefined) missing.push(tarball);
    else if (found === integrity) published.push(tarball);
    else
      faults.push(
        `${name} ${version} is published with other contents. Repeat the release from its commit with the same npm, or choose a new version.`,
      );
  }
  return { missing, published, faults };
}

/** The output of `npm view <name>@<version> dist.integrity --json`. It prints nothing for a version that is missing, or E404. */
export function readIntegrity(output: string): string | undefined {
  if (output.trim() === "") return undefined;
  const answer: unknown = JSON.parse(output);
  if (typeof answer === "string") return answer;
  const code = (answer as { error?: { code?: string } } | null)?.error?.code;
  if (code === "E404") return undefined;
  // Anything else is no proof that the version is missing.
  throw new Error(`npm view failed (${code ?? "unknown answer"}). Check the connection to the registry, and repeat.`);
}
