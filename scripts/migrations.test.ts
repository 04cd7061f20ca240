import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { contractVersionOf, findContractions } from "./migrations/expand-only.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "todoke-released-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [archive = ""] = globSync("fixtures/released/todoke-*.tgz", { cwd: root });
const releasedVersion = /todoke-(.+)\.tgz$/.exec(archive)?.[1] ?? "";
execFileSync("tar", ["-xzf", join(root, archive), "-C", folder]);

/** Migrations by package and file. */
function readAll(base: string, packages: string): Map<string, string> {
  const files = globSync(`${packages}/**/migrations/*.sql`, { cwd: base, exclude: ["**/*.test.*"] });
  return new Map(
    files.map((file) => [
      file.replace(/^(packages|services|node_modules\/@todoke)\//, ""),
      readFileSync(join(base, file), "utf8"),
    ]),
  );
}
const released = readAll(folder, "node_modules/@todoke/*");
const ours = readAll(root, "{packages,services}/*");
const added = [...ours].filter(([file]) => !released.has(file));

test("no migration of the last release was edited or removed", () => {
  expect(released.size).toBeGreaterThan(30);
  expect([...released].filter(([file, sql]) => ours.get(file) !== sql).map(([file]) => file)).toEqual([]);
});

const olderOrSame = (version: string) => version.localeCompare(releasedVersion, "en", { numeric: true }) <= 0;

/** A migration since the last release expands only, or names the release since which nothing uses what it takes away. */
function faultsOf([file, sql]: readonly [string, string]): string[] {
  const since = contractVersionOf(sql);
  if (since !== undefined) return olderOrSame(since) ? [] : [`${file}: ${since} is not released yet`];
  return findContractions(sql).map((what) => `${file}: ${what}`);
}

test("every migration since the last release keeps it working, or is marked as the second half of a change", () => {
  expect(added.flatMap(faultsOf)).toEqual([]);
});

test.each([
  ["alter table t drop column c;", "drops what the previous release may use"],
  ["drop table t;", "drops what the previous release may use"],
  ["drop function f();", "drops what the previous release may use"],
  ["alter table t rename to u;", "renames what the previous release may use"],
  ["alter table t rename column a to b;", "renames what the previous release may use"],
  ["alter table t alter column c type bigint;", "changes the type of a column"],
  ["alter table t alter c set not null;", "makes a column not null, which the previous release may leave empty"],
  ["alter table t add column c text not null;", "adds a column that is not null and has no default"],
  ["alter table t add constraint k check (c > 0);", "adds a constraint that the previous release may violate"],
  ["create unique index i on t (c);", "adds a unique index that the previous release may violate"],
])("%s is found", (sql, what) => {
  expect(findContractions(sql)).toEqual([what]);
  expect(faultsOf(["a/0001_a.sql", sql])).toEqual([`a/0001_a.sql: ${what}`]);
  expect(faultsOf(["a/0001_a.sql", `-- contract: ${releasedVersion} nothing reads it\n${sql}`])).toEqual([]);
  expect(faultsOf(["a/0001_a.sql", `-- contract: 999.0.0 nothing reads it\n${sql}`])).toHaveLength(1);
});

test.each([
  "alter table t add column c text;",
  "alter table t add column c text not null default '';",
  "alter table t add column c bigint generated always as identity;",
  "alter table t add constraint k check (c is not null) not valid;",
  "create table n (c text not null, constraint k check (c <> ''));\ncreate unique index i on n (c);\nalter table n add constraint l unique (c);",
  "create index i on t (c);",
  "-- drop table t\nselect 1;",
  "create function f() returns void language sql as $$ drop table t; $$;",
  "drop index i;",
])("%s only expands", (sql) => {
  expect(findContractions(sql)).toEqual([]);
});
