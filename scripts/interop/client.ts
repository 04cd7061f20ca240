/**
 * The client as npm installs it, on each engine that it is for: Node 20.19, 22, 24 and the one of this repository, Deno and Bun. And the
 * webhook receivers of its README, with Express, Fastify and the servers of Deno and Bun, which get what a service has sent.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../test/command.ts";
import { findEngines } from "../test/engines.ts";
import { failed, passed, type Result, sum } from "../test/result.ts";
import { type Receiver, receiversIn } from "./client/receivers.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

/** The packages of npm have a Node for each platform. */
const nodePackage = process.platform === "darwin" ? "node-bin-darwin" : `node-${process.platform}`;
const nodes = ["20.19", "22", "24"];

export async function client(signal: AbortSignal): Promise<Result> {
  const folder = cacheFolder("client");
  await install(folder, signal);
  await using engines = findEngines(signal, ["postgres"]);
  await engines.find();
  Object.assign(process.env, engines.urls());
  const { startClientTarget } = await import(pathToFileURL(join(root, "flows/client-target.ts")).href);
  await using target: Target = await startClientTarget();
  const results: Result[] = [];
  for (const { name, command, version } of runtimesIn(folder)) {
    report(`${name} ${(await outputOf([...version, "--version"], { signal })).split("\n")[0]}`);
    results.push(await runProgram([...command, join(folder, "program.js")], { target, signal, name }));
  }
  const [sent] = target.webhooks;
  if (!sent) throw new Error("no service has sent a webhook");
  for (const receiver of receiversIn(readFileSync(join(root, "packages/client/README.md"), "utf8")))
    results.push(await checkReceiver(receiver, { folder, target, sent, signal }));
  return sum(results);
}

/** What flows/client-target.ts starts. */
interface Target extends AsyncDisposable {
  readonly setup: object;
  readonly secret: string;
  readonly webhooks: readonly SentWebhook[];
}

interface SentWebhook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Deno and Bun need no install script: their packages have the programs. */
async function install(folder: string, signal: AbortSignal): Promise<void> {
  const npm = findProgram("npm", "Install Node with npm.");
  report("building the package, and installing Node, Deno, Bun, Express and Fastify with npm");
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  await outputOf([process.execPath, join(root, "scripts/pack.ts"), join(folder, "dist")], { signal });
  const [tarball = ""] = globSync(join(folder, "dist/packages/todoke-client-*.tgz"));
  const peers = ["deno", "bun", "express", "fastify"].map((name) => `${name}@latest`);
  const olderNodes = nodes.map((version) => `node${version}@npm:${nodePackage}-${process.arch}@${version}`);
  const options = ["--prefix", folder, "--no-save", "--no-audit", "--ignore-scripts"];
  await outputOf([npm, "install", ...options, tarball, ...peers, ...olderNodes], { signal, cwd: folder });
  const program = readFileSync(new URL("./client/program.ts", import.meta.url), "utf8");
  writeFileSync(join(folder, "program.js"), stripTypeScriptTypes(program));
}

function runtimesIn(folder: string) {
  const modules = join(folder, "node_modules");
  const bun = globSync(join(modules, "@oven/bun-*/bin/bun"))[0] ?? "bun";
  const deno = join(modules, ".bin/deno");
  const node = (path: string) => ({ name: "Node", command: [path], version: [path] });
  return [
    ...nodes.map((version) => node(join(modules, `node${version}`, "bin/node"))),
    node(process.execPath),
    { name: "Deno", command: [deno, "run", "--allow-all"], version: [deno] },
    { name: "Bun", command: [bun], version: [bun] },
  ];
}

interface ProgramOptions {
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly name: string;
}

async function runProgram(command: readonly string[], { target, signal, name }: ProgramOptions): Promise<Result> {
  const prefix = `${name.toLowerCase()}${crypto.randomUUID().slice(0, 8)}`;
  const env = { SETUP: JSON.stringify({ ...target.setup, prefix }) };
  const lines = (await outputOf(command, { signal, env })).trim().split("\n");
  const checks = lines.map((line) => JSON.parse(line) as { readonly name: string; readonly fault?: string });
  for (const { name: what, fault } of checks) if (fault) report(`not so: ${what}: ${fault}`);
  return sum(checks.map(({ fault }) => (fault ? failed : passed)));
}

interface ReceiverOptions {
  readonly folder: string;
  readonly target: Target;
  readonly sent: SentWebhook;
  readonly signal: AbortSignal;
}

/** It handles the webhook, and answers a forged one with 400. */
async function checkReceiver({ name, runtime, source }: Receiver, options: ReceiverOptions): Promise<Result> {
  const { folder, target, sent, signal } = options;
  const file = join(folder, `${name.toLowerCase()}.js`);
  writeFileSync(file, stripTypeScriptTypes(source));
  const found = runtimesIn(folder).findLast((each) => each.name === runtime);
  const [program = "", ...args] = found?.command ?? [];
  const env = { ...process.env, SECRET: target.secret };
  const child = spawn(program, [...args, file], { env, signal, stdio: ["ignore", "pipe", "ignore"] });
  try {
    const lines = child.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const port = /port (\d+)/.exec(String((await lines.next()).value))?.[1];
    const { "content-length": _, connection: _connection, host: _host, ...headers } = sent.headers;
    const post = (body: string) => fetch(`http://127.0.0.1:${port}/webhooks`, { method: "POST", headers, body });
    const [good, forged] = [await post(sent.body), await post(sent.body.replace("{", "{ "))];
    const handled = String((await lines.next()).value).trim();
    const isRight = good.status === 204 && forged.status === 400 && handled === `handled ${sent.headers["webhook-id"]}`;
    report(`${isRight ? "" : "not so: "}a webhook with ${name}: ${good.status}, ${handled}; forged: ${forged.status}`);
    return isRight ? passed : failed;
  } finally {
    const exited = child.exitCode ?? once(child, "exit");
    child.kill();
    await exited;
  }
}
