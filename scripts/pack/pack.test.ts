/** The packages as a user meets them: installed from their tarballs into an empty project outside the repository. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort, testDatabase, until } from "@todoke/kernel/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
let project: string;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "todoke-installed-"));
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
  await run(process.execPath, ["scripts/pack.ts", join(project, "dist")], { cwd: root });
  const tarballs = join(project, "dist/packages");
  for (const tarball of readdirSync(tarballs)) await install(join(tarballs, tarball));
}, 600_000);
afterAll(() => rmSync(project, { recursive: true, force: true, maxRetries: 10 }));

test("the compiler keeps no state from one pack to the next, with which the second would write nothing", async () => {
  const { stdout } = await run("node_modules/.bin/tsc", ["-p", "scripts/pack/tsconfig.json", "--showConfig"], {
    cwd: root,
  });
  const { incremental, tsBuildInfoFile } = JSON.parse(stdout).compilerOptions;
  expect([incremental, tsBuildInfoFile]).toEqual([false, undefined]);
});

/**
 * As npm installs it, with its declared dependencies and no others. These are links to the versions of our lock file: what the
 * registry has today is no part of the test.
 */
async function install(tarball: string): Promise<void> {
  const unpacked = join(project, "unpacked");
  mkdirSync(unpacked);
  await run("tar", ["-xzf", tarball, "-C", unpacked]);
  const manifest = JSON.parse(readFileSync(join(unpacked, "package/package.json"), "utf8"));
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, "@todoke"), { recursive: true });
  renameSync(join(unpacked, "package"), join(modules, manifest.name));
  rmSync(unpacked, { recursive: true });
  const others = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
  for (const name of others.filter((each) => !each.startsWith("@todoke/"))) {
    const [from, to] = [join(root, "node_modules", name), join(modules, name)];
    mkdirSync(dirname(to), { recursive: true });
    if (existsSync(from) && !existsSync(to)) symlinkSync(from, to);
  }
}

/** `npm test` leaves variables that would change what the npm of the project does. */
const withoutNpm = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^npm_|^NODE_OPTIONS$|^INIT_CWD$/i.test(name)));

const compile = (config: object) => {
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config));
  return run(join(root, "node_modules/.bin/tsc"), ["-p", project]).catch(({ stdout }) => expect.fail(stdout));
};
const strict = { module: "nodenext", target: "es2022", strict: true, skipLibCheck: false };
const typeRoots = [join(root, "node_modules/@types")];

test("a strict program compiles against every entry of every package", { timeout: 120_000 }, async () => {
  const entries = readdirSync(join(project, "node_modules/@todoke")).flatMap((name) => {
    const manifest = join(project, "node_modules/@todoke", name, "package.json");
    const { exports = {} } = JSON.parse(readFileSync(manifest, "utf8")) as { exports?: Record<string, unknown> };
    return Object.keys(exports)
      .filter((path) => path !== "./package.json")
      .map((path) => `@todoke/${name}${path.slice(1)}`);
  });
  expect(entries).toContain("@todoke/kernel/claims");
  const lines = entries.map((entry, index) => `export * as entry${index} from "${entry}";\n`);
  writeFileSync(join(project, "entries.ts"), lines.join(""));
  await compile({ compilerOptions: { ...strict, noEmit: true, types: ["node"], typeRoots }, files: ["entries.ts"] });
});

/** The Node that runs the tests, and the one that npm runs on, which may be years older. */
const nodes = [...new Set([process.execPath, process.env.npm_node_execpath ?? process.execPath])];

test.each(nodes)("the kernel's example ships every order once on %s", { timeout: 120_000 }, async (node) => {
  const source = join(root, "examples/kernel-alone");
  mkdirSync(join(project, "example"), { recursive: true });
  cpSync(join(source, "migrations"), join(project, "example/migrations"), { recursive: true });
  cpSync(join(source, "main.ts"), join(project, "example/main.ts"));
  const lib = ["es2024", "esnext.disposable"];
  await compile({ compilerOptions: { ...strict, lib, types: ["node"], typeRoots }, files: ["example/main.ts"] });
  await using t = await testDatabase({ sets: [] });
  const env = { ...withoutNpm(process.env), DATABASE_URL: t.url };
  const { stdout } = await run(node, [join(project, "example/main.js")], { env });
  expect(stdout).toBe("3 orders placed\n3 orders, 3 shipped, 3 shipments\n");
});

test.each(nodes)("the client runs on %s", async (node) => {
  writeFileSync(
    join(project, "client.js"),
    `import { createClient, isProblem } from "@todoke/client";
     import "@todoke/client/login";
     import "@todoke/client/webhooks";
     const fetch = async () => new Response('{"balance":7}');
     const todoke = createClient({ services: { points: "http://points.example" }, apiKey: "tdk_1", fetch });
     console.log((await todoke.points.getBalance({ user_id: "u_1" })).balance, isProblem(1));`,
  );
  const { stdout } = await run(node, [join(project, "client.js")], { env: withoutNpm(process.env) });
  expect(stdout).toBe("7n false\n");
});

test("todoke demo runs in an empty folder, and SIGTERM stops it", { timeout: 240_000 }, async () => {
  const names = ["account", "entitlement", "notification", "matchmaking", "points", "orders", "gateway_bff"];
  const all = [...names, "postgres", "oidc_provider", "demo"];
  const ports = await Promise.all(all.map(() => freePort()));
  const variables = all.map((name, index) => [`${name.toUpperCase()}_PORT`, String(ports[index])]);
  const folder = mkdtempSync(join(project, "empty-"));
  const env = { ...withoutNpm(process.env), ...Object.fromEntries(variables) };
  const program = join(project, "node_modules/@todoke/cli/todoke.js");
  const child = spawn(nodes.at(-1) as string, [program, "demo"], { cwd: folder, env });
  const output = await untilReady(child);
  expect(output).toContain("Log in at http://localhost:");
  const url = `http://127.0.0.1:${ports[1]}/v1/entitlements/grants`;
  const body = { user_id: "u_1", stock_keeping_unit: "item1", reason: "purchase", purchase_id: "p_1" };
  const headers = { authorization: "Bearer tdk_dev", "idempotency-key": "p_1", "content-type": "application/json" };
  const { status } = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(status).toBe(201);
  const site = `http://localhost:${ports.at(-1)}`;
  const page = await (await fetch(`${site}/shop/`)).text();
  const [, script] = /type="module" src="([^"]+)"/.exec(page) ?? [];
  for (const path of [script, "/shop/page/elements.js", "/shop/client/index.js", "/shop/client/gen/operations.js"])
    expect([path, (await fetch(site + path)).status]).toEqual([path, 200]);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  expect((await exited)[0]).toBe(0);
});

/** Its output until then. The pipes stay open: a program whose output nobody reads cannot stop in order. */
async function untilReady(child: ChildProcess): Promise<string> {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (data) => {
      text += data;
    });
  await until("it is ready", () => text.includes("Ready.") || child.exitCode !== null, { withinMs: 180_000 });
  return text;
}

test("the tarballs have a licence, a README and no tests, and name the version of the root", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const installed = join(project, "node_modules/@todoke");
  for (const name of readdirSync(installed)) {
    const files = readdirSync(join(installed, name), { recursive: true }).map(String);
    expect(files, name).toEqual(expect.arrayContaining(["LICENSE", "package.json"]));
    expect(
      files.filter((file) => /\.test\.|(^|\/)testing|(?<!\.d)\.ts$/.test(file)),
      name,
    ).toEqual([]);
    expect(JSON.parse(readFileSync(join(installed, name, "package.json"), "utf8")).version).toBe(version);
  }
  expect(dirname(project)).not.toContain(root);
});
