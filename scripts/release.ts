/**
 * `npm run release -- <version>` publishes all packages with provenance, from a commit that `--prepare` has prepared. `--dry-run`
 * does everything but publish (docs/guides/release.md, docs/adr/0088).
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { checkProvenance, checkTree, checkVersion, nameChartVersion, nameUnreleased } from "./release/checks.ts";
import { checkFixture } from "./release/fixture.ts";
import { planPublication, type Tarball } from "./release/publication.ts";
import { checkTarball, findPublished, publish, readTarballs } from "./release/tarballs.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const packages = join(root, "dist/packages");
const chartFile = "deploy/kubernetes/todoke/Chart.yaml";
const read = (file: string) => readFileSync(join(root, file), "utf8");
const write = (file: string, text: string) => writeFileSync(join(root, file), text);
const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" });
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { prepare: { type: "boolean" }, "dry-run": { type: "boolean" } },
});
const version = positionals.join(" ");
if (values.prepare) prepare();
else await release(values["dry-run"] === true);

/** Writes what a release commit consists of. Its author reads and commits it. */
function prepare(): void {
  const changelog = nameUnreleased(read("CHANGELOG.md"), version, new Date().toISOString().slice(0, 10));
  const chart = nameChartVersion(read(chartFile), version);
  const faults = checkVersion({ version, rootVersion: version, changelog, chart });
  if (faults.length > 0) {
    report(faults);
    return;
  }
  write("CHANGELOG.md", changelog);
  write(chartFile, chart);
  // Changes the lock file as well.
  run("npm", "version", version, "--no-git-tag-version", "--allow-same-version");
  run(process.execPath, "scripts/release-fixture.ts");
  console.log(`Prepared ${version}. Read the changes with git diff, run npm test, and commit them on main.`);
}

async function release(isDryRun: boolean): Promise<void> {
  const before = checkBefore();
  if (before.length > 0 && !isDryRun) {
    report(before);
    return;
  }
  run(process.execPath, "scripts/pack.ts");
  const tarballs = readTarballs(packages);
  const fixture = checkFixture({ root, packages, version });
  const { missing, published, faults } = await planPublication(tarballs, findPublished);
  const after = [...fixture, ...tarballs.flatMap(checkTarball), ...faults];
  // A dry run goes on after the first faults, so that one run shows everything that is wrong.
  for (const { name } of published) console.log(`${name} ${version} is published already`);
  if (isDryRun) for (const tarball of missing) console.log(`would publish ${describe(tarball)}`);
  if (isDryRun || after.length > 0) {
    report([...before, ...after]);
    return;
  }
  for (const tarball of missing) {
    console.log(`publishing ${describe(tarball)}`);
    publish(tarball);
  }
  console.log(`Released ${version}. Tag the commit: git tag v${version} && git push origin v${version}`);
}

function checkBefore(): readonly string[] {
  const { version: rootVersion, repository } = JSON.parse(read("package.json"));
  // GitLab checks out a commit, not a branch.
  const branch = git("branch", "--show-current").trim() || (process.env.CI_COMMIT_BRANCH ?? "");
  return [
    ...checkTree({ branch, status: git("status", "--porcelain") }),
    ...checkVersion({ version, rootVersion, changelog: read("CHANGELOG.md"), chart: read(chartFile) }),
    ...checkProvenance(process.env, repository),
  ];
}

function describe({ name, version, integrity }: Tarball): string {
  return `${name} ${version} ${integrity.slice(0, 20)}…`;
}

function report(faults: readonly string[]): void {
  for (const fault of faults) console.error(`✗ ${fault}`);
  if (faults.length === 0) console.log("No faults. Nothing was published: this was a dry run.");
  else console.error(`${faults.length} faults. This run has published nothing.`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
