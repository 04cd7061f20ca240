import { expect, test } from "vitest";
import {
  checkProvenance,
  checkTree,
  checkVersion,
  compareVersions,
  nameChartVersion,
  nameUnreleased,
} from "./checks.ts";

const changelog = "# Changelog\n\n## 0.10.0 - 2026-11-18\n\n- New.\n\n## 0.9.0 - 2026-10-01\n\n- Old.\n";
const chart = "name: todoke\nversion: 0.10.0\nappVersion: 0.10.0\n";
const prepared = { version: "0.10.0", rootVersion: "0.10.0", changelog, chart };

test("a prepared version has no faults", () => {
  expect(checkVersion(prepared)).toEqual([]);
});

test.each(["", "1.0", "v1.0.0", "01.0.0", "1.0.0-rc.1", "1.0.0 2.0.0"])('"%s" is refused as a version', (version) => {
  expect(checkVersion({ ...prepared, version })).toEqual([expect.stringContaining("is no version")]);
});

test("versions are compared by their numbers", () => {
  expect(["1.0.0", "0.10.0", "0.9.1", "0.9.10"].sort(compareVersions)).toEqual(["0.9.1", "0.9.10", "0.10.0", "1.0.0"]);
});

test("all faults of a version are reported together", () => {
  expect(checkVersion({ ...prepared, version: "0.8.0" })).toEqual([
    expect.stringContaining("package.json has the version 0.10.0, not 0.8.0"),
    expect.stringContaining("Chart.yaml has another version than 0.8.0"),
    expect.stringContaining('not "## 0.8.0 - <date>"'),
    expect.stringContaining("0.8.0 is not newer than 0.9.0"),
  ]);
});

test("a version that is in the changelog twice is not newer than itself", () => {
  const twice = changelog.replace("## 0.9.0", "## 0.10.0");
  expect(checkVersion({ ...prepared, changelog: twice })).toEqual([
    expect.stringContaining("0.10.0 is not newer than 0.10.0"),
  ]);
});

test.each([
  ["has changes that are not released", changelog.replace("## 0.10.0", "## Unreleased\n\n- Newer.\n\n## 0.10.0")],
  ["has no date", changelog.replace(" - 2026-11-18", "")],
])("a changelog that %s is a fault", (_what, text) => {
  const faults = checkVersion({ ...prepared, changelog: text });
  expect(faults).toContainEqual(expect.stringContaining("The first section of CHANGELOG.md"));
});

test("a section without text is a fault", () => {
  const empty = changelog.replace("- New.", "");
  expect(checkVersion({ ...prepared, changelog: empty })).toEqual([expect.stringContaining("is empty")]);
});

test("preparing a version names the unreleased changes and the chart after it", () => {
  const text = nameUnreleased("# Changelog\n\n## Unreleased\n\n- New.\n", "0.10.0", "2026-11-18");
  expect(text).toBe("# Changelog\n\n## 0.10.0 - 2026-11-18\n\n- New.\n");
  expect(nameChartVersion("name: todoke\nversion: 0.9.0\nappVersion: 0.9.0\n", "0.10.0")).toBe(chart);
  expect(nameUnreleased(changelog, "0.10.0", "2026-12-01")).toBe(changelog);
});

test("a release needs the branch main, without changes", () => {
  expect(checkTree({ branch: "main", status: "" })).toEqual([]);
  expect(checkTree({ branch: "topic", status: " M README.md\n?? notes.txt\n" })).toEqual([
    expect.stringContaining('The branch is "topic"'),
    expect.stringContaining("2 files are not committed (README.md, notes.txt)"),
  ]);
});

const github = { GITHUB_ACTIONS: "true", ACTIONS_ID_TOKEN_REQUEST_URL: "http://127.0.0.1" };
const gitlab = { GITLAB_CI: "true", SIGSTORE_ID_TOKEN: "token" };

test.each([github, gitlab])("a CI with an OIDC token can publish with provenance: %o", (env) => {
  expect(checkProvenance(env, { type: "git" })).toEqual([]);
});

test.each([
  [{}, "this is no CI with OIDC"],
  [{ GITHUB_ACTIONS: "true" }, "id-token: write"],
  [{ GITLAB_CI: "true" }, "SIGSTORE_ID_TOKEN"],
])("with the environment %o nothing can be published with provenance", (env, text) => {
  expect(checkProvenance(env, { type: "git" })).toEqual([expect.stringContaining(text)]);
});

test("provenance needs the repository in package.json", () => {
  expect(checkProvenance(github, undefined)).toEqual([expect.stringContaining('no "repository"')]);
});
