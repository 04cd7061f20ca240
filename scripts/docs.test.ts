import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { logFields } from "@todoke/kernel/telemetry";
import { expect, test } from "vitest";
import { claimedTablesIn, problemsIn, statesOfDiagram, statusChecksIn, type TableStates } from "./docs/catalogues.ts";
import { anchorsOf, blocksOf, linksOf, rowsOf, sectionOf, sectionsOf, shellOf } from "./docs/markdown.ts";
import { telemetryNames } from "./docs/telemetry-names.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const find = (...patterns: string[]) =>
  globSync(patterns, {
    cwd: root,
    exclude: (path) => /(^|\/)(node_modules|dist|\.todoke|\.git)(\/|$)/.test(path),
  }).sort();

const pages = find("**/*.md");
const sources = find("{packages,services}/**/*.ts").filter((path) => !path.endsWith(".test.ts"));
const migrations = find("{packages,services}/*/migrations/*.sql");

test("docs/telemetry.md lists exactly the spans, metrics and log fields of the code", async () => {
  const page = read("docs/telemetry.md");
  const named = await telemetryNames();
  const metrics = rowsOf(page, "metric").map(([name, kind, unit, attributes]) => [name, kind, unit, attributes]);
  const catalogue = Object.entries(named.metrics).map(([name, { kind, unit, attributes }]) => [
    name,
    kind,
    unit,
    attributes.join(", "),
  ]);
  expect(metrics.sort()).toEqual(catalogue.sort());
  expect(firstCells(page, "span")).toEqual([...named.spans].sort());
  expect(firstCells(page, "field")).toEqual(Object.values<string>(logFields).sort());
});

test("docs/errors.md lists exactly the problems of all catalogues, with status and title", () => {
  const listed = rowsOf(read("docs/errors.md"), "code").map(([code, status, title]) => ({ code, status, title }));
  const declared = sources.flatMap((path) => problemsIn(read(path)));
  expect(declared.length).toBeGreaterThan(15);
  expect(byCode(listed)).toEqual(byCode(declared));
});

test("docs/states.md shows exactly the states of the database and the claim engine", () => {
  const accepted = statesByTable(migrations.flatMap((path) => statusChecksIn(read(path))));
  const claimed = statesByTable(sources.flatMap((path) => claimedTablesIn(read(path))));
  const page = read("docs/states.md");
  const drawn = statesByTable(
    sectionsOf(page)
      .filter((heading) => /^\w+$/.test(heading)) // A table's name; other sections have no status column.
      .map((table) => ({ table, states: statesOfDiagram(blocksOf(sectionOf(page, table), "mermaid")[0] ?? "") })),
  );
  expect(Object.keys(claimed).length).toBeGreaterThan(2);
  expect(drawn).toEqual(accepted);
  // A table may have states that the claim engine does not use.
  for (const [table, states] of Object.entries(claimed))
    expect(accepted[table]).toEqual(expect.arrayContaining([...states]));
});

test("every relative link leads to an existing file and heading", () => {
  const broken = pages.flatMap((path) =>
    linksOf(read(path))
      .filter(({ target }) => !/^[a-z]+:/.test(target) && !linkExists(path, target))
      .map(({ line, target }) => `${path}:${line} links to ${target}`),
  );
  expect(pages.length).toBeGreaterThan(20);
  expect(broken).toEqual([]);
});

test("every line of docs/security.md links a test or states why there is none", () => {
  const lines = read("docs/security.md")
    .split("\n")
    .filter((line) => /^\| (?!tried)/.test(line));
  expect(lines.length).toBeGreaterThan(70);
  const untested = lines.filter((line) => {
    const tests = linksOf(line).filter(({ target }) => target.endsWith(".test.ts"));
    return tests.length === 0 && !/\| (does not apply|not built|not ours): /.test(line);
  });
  expect(untested).toEqual([]);
});

test("every excerpt with a file name in its first line is in that file", () => {
  const excerpts = pages.flatMap((path) =>
    ["ts", "sql"]
      .flatMap((language) => blocksOf(read(path), language))
      .flatMap((block) => {
        const [, file, excerpt = ""] = /^(?:\/\/|--) (\S+\.(?:ts|sql))\n([\s\S]*)$/.exec(block) ?? [];
        return file === undefined ? [] : [{ path, file, excerpt }];
      }),
  );
  const wrong = excerpts.filter(({ file, excerpt }) => !existsSync(join(root, file)) || !read(file).includes(excerpt));
  expect(excerpts.length).toBeGreaterThan(5);
  expect(wrong.map(({ path, file, excerpt }) => `${path} shows an excerpt that is not in ${file}: ${excerpt}`)).toEqual(
    [],
  );
});

test("every npm script that a page names exists", () => {
  const named = pages.flatMap((path) =>
    shellOf(read(path)).flatMap((code) =>
      [...code.matchAll(/\bnpm run ([a-z][\w:-]*)(?: .*?--workspace[ =](\S+))?/g)].map(([, script = "", workspace]) => {
        return { path, script, folders: workspace === undefined ? [".", dirname(path)] : [workspace] };
      }),
    ),
  );
  const missing = named.filter(({ script, folders }) => !folders.some((folder) => script in scriptsOf(folder)));
  expect(named.length).toBeGreaterThan(3);
  expect(missing.map(({ path, script }) => `${path} names npm run ${script}`)).toEqual([]);
});

test("every todoke command and switch that a page names exists", () => {
  const named = pages.flatMap((path) =>
    shellOf(read(path)).flatMap((code) =>
      [...code.matchAll(/(?<![\w@/.-])todoke (?:-- )?([a-z]+)\b([^\n`;|&]*)/g)].map(([, command = "", rest = ""]) => {
        return { path, command, switches: rest.match(/--[a-z-]+/g) ?? [] };
      }),
    ),
  );
  const help = new Map(
    [...new Set(named.map(({ command }) => command))].map((command) => [command, readHelp(command)]),
  );
  const missing = named.filter(({ command, switches }) => {
    const text = help.get(command);
    return text === undefined || switches.some((name) => !text.includes(name));
  });
  expect(help.size).toBeGreaterThan(3);
  expect(
    missing.map(({ path, command, switches }) => `${path} names todoke ${[command, ...switches].join(" ")}`),
  ).toEqual([]);
});

test("docs/adr/README.md links every decision, and every page that the code names exists", () => {
  const decisions = find("docs/adr/[0-9]*.md");
  const linked = linksOf(read("docs/adr/README.md")).map(({ target }) => `docs/adr/${target}`);
  expect(decisions.length).toBeGreaterThan(0);
  expect(decisions.filter((path) => !linked.includes(path))).toEqual([]);
  const named = sources.flatMap((path) =>
    [...read(path).matchAll(/\bdocs\/[\w/-]+(?:\.md)?/g)].map(([name]) => ({ path, name })),
  );
  const missing = named.filter(({ name }) => find(`${name}*`).length === 0);
  expect(missing.map(({ path, name }) => `${path} names ${name}`)).toEqual([]);
});

const firstCells = (page: string, head: string) =>
  rowsOf(page, head)
    .map(([first]) => first)
    .sort();

const byCode = <Entry extends { code?: string | undefined }>(entries: readonly Entry[]) =>
  [...entries].sort((a, b) => String(a.code).localeCompare(String(b.code)));

function statesByTable(tables: readonly TableStates[]): Record<string, readonly string[]> {
  return Object.fromEntries(tables.map(({ table, states }) => [table, states]));
}

function linkExists(from: string, target: string): boolean {
  const [path = "", anchor] = target.split("#");
  const file = path === "" ? from : join(dirname(from), path);
  if (!existsSync(join(root, file))) return false;
  return anchor === undefined || (file.endsWith(".md") && anchorsOf(read(file)).has(anchor));
}

function scriptsOf(folder: string): Record<string, string> {
  const file = join(folder, "package.json");
  return existsSync(join(root, file)) ? (JSON.parse(read(file)).scripts ?? {}) : {};
}

/** The command's help, or undefined if there is no such command. */
function readHelp(command: string): string | undefined {
  const { status, stdout } = spawnSync(process.execPath, ["packages/cli/main.ts", "help", command], {
    cwd: root,
    encoding: "utf8",
    timeout: 60_000,
  });
  return status === 0 ? stdout : undefined;
}
