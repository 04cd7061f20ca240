/** Checks the repository before anything is packed. Each check returns its faults, and each fault says what to do. */

/** Three numbers: a version with a suffix, such as 1.0.0-rc.1, would need a tag of its own in the registry. */
const versionForm = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
const headingForm = /^## (.+)$/gm;

interface Prepared {
  readonly version: string;
  /** The version in the root's package.json. */
  readonly rootVersion: string;
  readonly changelog: string;
  /** The Helm chart's Chart.yaml. */
  readonly chart: string;
}

export function checkVersion({ version, rootVersion, changelog, chart }: Prepared): readonly string[] {
  if (!versionForm.test(version)) return [`"${version}" is no version. Name one of three numbers, such as 0.2.0.`];
  const faults: string[] = [];
  const prepare = `Run npm run release -- ${version} --prepare, and commit the result.`;
  if (rootVersion !== version) faults.push(`package.json has the version ${rootVersion}, not ${version}. ${prepare}`);
  if (chart !== nameChartVersion(chart, version))
    faults.push(`Chart.yaml has another version than ${version}. ${prepare}`);
  const [first, ...others] = readSections(changelog);
  const isDated = first !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(first.date);
  if (first?.name !== version || !isDated)
    faults.push(
      `The first section of CHANGELOG.md is not "## ${version} - <date>". Write it as "## Unreleased". ${prepare}`,
    );
  else if (first.text === "")
    faults.push(`The section ${version} of CHANGELOG.md is empty. Write down what users must know, and commit it.`);
  return [...faults, ...checkIsNewer(version, others)];
}

/** The changelog has every release, so its newest other section is the last one. */
function checkIsNewer(version: string, sections: readonly Section[]): readonly string[] {
  const released = sections.map(({ name }) => name).filter((name) => versionForm.test(name));
  const last = released.sort(compareVersions).at(-1);
  if (last === undefined || compareVersions(version, last) > 0) return [];
  return [`${version} is not newer than ${last}, the last release in CHANGELOG.md. Choose a higher version.`];
}

export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split(".").map(Number)) as [number[], number[]];
  const index = left.findIndex((number, position) => number !== right[position]);
  return index === -1 ? 0 : (left[index] ?? 0) - (right[index] ?? 0);
}

interface Section {
  readonly name: string;
  readonly date: string;
  readonly text: string;
}

function readSections(changelog: string): readonly Section[] {
  const headings = [...changelog.matchAll(headingForm)];
  return headings.map((heading, index) => {
    const [name = "", date = ""] = (heading[1] ?? "").split(" - ");
    const text = changelog.slice(heading.index + heading[0].length, headings[index + 1]?.index).trim();
    return { name, date, text };
  });
}

/** The changelog with its section "Unreleased" named after the version. A changelog without one is left as it is. */
export const nameUnreleased = (changelog: string, version: string, date: string): string =>
  changelog.replace(/^## Unreleased$/m, `## ${version} - ${date}`);

/** The chart and the image that it runs have the version of the packages. */
export const nameChartVersion = (chart: string, version: string): string =>
  chart.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`);

export function checkTree({ branch, status }: { branch: string; status: string }): readonly string[] {
  const faults: string[] = [];
  if (branch !== "main") faults.push(`The branch is "${branch}", not main. Merge it, and release from main.`);
  const changed = status.split("\n").filter((line) => line !== "");
  if (changed.length > 0) {
    const names = changed.slice(0, 5).map((line) => line.slice(3));
    const more = changed.length > names.length ? ", …" : "";
    faults.push(`${changed.length} files are not committed (${names.join(", ")}${more}). Commit or remove them.`);
  }
  return faults;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** npm signs the provenance with an identity that the CI vouches for; without one it refuses each package. */
export function checkProvenance(env: Environment, repository: unknown): readonly string[] {
  const faults: string[] = [];
  if (env.GITHUB_ACTIONS === "true") {
    if (!env.ACTIONS_ID_TOKEN_REQUEST_URL)
      faults.push('Provenance: the job has no OIDC token. Give it the permission "id-token: write".');
  } else if (env.GITLAB_CI === "true") {
    if (!env.SIGSTORE_ID_TOKEN)
      faults.push(
        'Provenance: the job has no OIDC token. Add SIGSTORE_ID_TOKEN with "aud: sigstore" to its id_tokens.',
      );
  } else faults.push("Provenance: this is no CI with OIDC. Run the release in GitHub Actions or GitLab CI.");
  if (repository === undefined)
    faults.push(
      'Provenance: package.json has no "repository". Name the one that the CI builds from: they are compared.',
    );
  return faults;
}
