import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { domainFolders, findLayoutViolations, findMissingCommands, requiredFiles } from "./boundaries/layout.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const services = globSync("services/*", { cwd: root }).sort();

test("every service has the common layout", () => {
  const files = globSync("services/**/*.{ts,sql,md,json}", {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  });
  expect(files.length).toBeGreaterThan(300);
  const violations = files.flatMap((path) =>
    findLayoutViolations({ path, text: readFileSync(join(root, path), "utf8") }),
  );
  expect(violations).toEqual([]);
});

test("every operation that changes something has a command of its name", () => {
  const files = new Set(globSync("services/*/{routes,commands}/*.ts", { cwd: root }));
  const routes = [...files].map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  expect(routes.flatMap((file) => findMissingCommands(file, files))).toEqual([]);
  const planted = { path: "services/points/routes/a.ts", text: 'app.put("/a", { operationId: "addPoints" });' };
  expect(findMissingCommands(planted, new Set(["services/points/commands/change-points.ts"]))).toEqual([
    "services/points/routes/a.ts: addPoints has no commands/add-points.ts",
  ]);
});

test("every service has the files that all services have", () => {
  expect(services).toEqual(Object.keys(domainFolders).map((name) => `services/${name}`));
  const missing = services.flatMap((service) => requiredFiles.map((file) => join(service, file)));
  expect(missing.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("every folder of a service's domain exists", () => {
  const folders = Object.entries(domainFolders).flatMap(([service, names]) =>
    names.map((name) => join("services", service, name)),
  );
  expect(folders.filter((folder) => !existsSync(join(root, folder)))).toEqual([]);
});

test.each([
  ["services/points/expiry.ts", "", "at its root"],
  ["services/points/helpers/a.ts", "", "helpers/ is neither"],
  ["services/points/queue/a.ts", "", "queue/ is neither"],
  ["services/points/routes/a.ts", "db.query(`select 1 from users`);", "has SQL"],
  ["services/points/commands/add-points.ts", "export function addPoints() { sql(`update a set b = 1`); }", "has SQL"],
  ["services/points/workers/a.ts", "const a = `\n  with due as (select 1)`;", "has SQL"],
  ["services/points/ledger/a.ts", "const a = startLoop(step, { intervalMs });", "has a background loop"],
  ["services/points/commands/a.ts", "export const a = () => createWorker<A>({});", "has a background loop"],
  ["services/points/store/a.ts", 'import { a } from "../commands/a.ts";', "a layer above"],
  ["services/points/ledger/a.ts", 'import { a } from "../workers/a.ts";', "a layer above"],
  ["services/points/commands/a.ts", 'import { b } from "../routes/a.ts";\nexport function a() {}', "a layer above"],
  ["services/points/telemetry.ts", 'import { a } from "./commands/a.ts";', "a layer above"],
  ["services/points/routes/a.ts", 'import { a } from "../main.ts";', "a layer above"],
  ["services/points/commands/add-points.ts", "export function add() {}", "does not export addPoints"],
])("%s with %s violates the layout", (path, text, violation) => {
  expect(findLayoutViolations({ path, text })).toEqual([expect.stringContaining(violation)]);
});

test.each([
  ["services/points/main.ts", 'import { a } from "./routes/a.ts";'],
  ["services/points/main.test.ts", "db.query(`select 1`);"],
  ["services/points/routes/a.ts", 'import { addPoints } from "../commands/add-points.ts";'],
  ["services/points/routes/a.ts", 'const summary = "Select a schedule. Update it and set its end.";'],
  ["services/points/workers/a.ts", 'import { a } from "../commands/a.ts";'],
  ["services/points/store/a.ts", "import type { A } from '../commands/a.ts';\nconst a = `select 1`;"],
  ["services/points/ledger/a.ts", 'import { problems } from "../problems.ts";'],
  ["services/points/commands/add-points.ts", "export const addPoints = (db: Db) => 1;"],
])("%s with %s respects the layout", (path, text) => {
  expect(findLayoutViolations({ path, text })).toEqual([]);
});
