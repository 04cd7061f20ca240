/**
 * Schemathesis makes requests from the OpenAPI document of every service, valid and not, and compares the responses with the
 * document. Each request has the credential of a caller who may use the route.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root, run } from "../test/command.ts";
import { findEngines } from "../test/engines.ts";
import { type Result, sum } from "../test/result.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

/** docs/interop.md says why the others are left out. */
const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "negative_data_rejection",
  "missing_required_header",
  "ignored_auth",
  "unsupported_method",
  "allow_header_conformance",
];

/**
 * A path like `/users/{user_id}:delete` also has the form of `/users/{user_id}`, so another method there gets 400 for a user ID that
 * is not valid, and not 405.
 */
const sharedPaths = "(:[a-z-]+|/batch)$";

const options = [
  "--max-examples=25",
  "--seed=16",
  "--generation-database=none",
  "--request-timeout=30",
  // flows/api-target.ts replaces it.
  "--header=Authorization:Bearer placeholder",
  // No session cookies besides: which of the two is valid, it does not know.
  "--generation-with-security-parameters=false",
  // A stream has no end, and Schemathesis reads a response to its end.
  "--exclude-path-regex=/stream$",
  "--warnings=off",
  "--continue-on-failure",
  "--no-color",
];

export async function schemathesis(signal: AbortSignal): Promise<Result> {
  const program = await install(signal);
  report((await outputOf([program, "--version"], { signal })).trim());
  await using engines = findEngines(signal, ["postgres"]);
  await engines.find();
  await using services = await startServices(engines.urls());
  const results: Result[] = [];
  for (const target of services.targets) results.push(await checkService(target, { program, signal }));
  return sum(results);
}

async function install(signal: AbortSignal): Promise<string> {
  const python = findProgram("python3", "Install Python 3.10 or newer.");
  const folder = cacheFolder("schemathesis");
  report("installing the newest Schemathesis with pip, in an environment of its own");
  await outputOf([python, "-m", "venv", folder], { signal });
  const pip = [join(folder, "bin/python"), "-m", "pip", "install", "--quiet", "--upgrade", "schemathesis"];
  await outputOf(pip, { signal });
  return join(folder, "bin/schemathesis");
}

interface Target {
  readonly name: string;
  readonly url: string;
  readonly userIds: readonly string[];
}

async function startServices(urls: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [join(root, "flows/api-target.ts")], {
    env: { ...process.env, ...urls },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const line = once(createInterface(child.stdout), "line");
  const [first] = await Promise.race([line, exited]);
  if (typeof first !== "string") throw new Error("the services did not start");
  return {
    targets: JSON.parse(first) as readonly Target[],
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}

interface Check {
  readonly program: string;
  readonly signal: AbortSignal;
}

async function checkService(target: Target, { program, signal }: Check): Promise<Result> {
  const { name, url } = target;
  report(`${name}: requests from its document`);
  const inCache = (extension: string) => join(cacheFolder("schemathesis"), `${name}.${extension}`);
  const [junit, config] = [inCache("xml"), inCache("toml")];
  const runPhases = async (phases: string, output: "inherit" | "ignore") => {
    await writeFile(config, formatConfig(target, await fetchSeen(url)));
    const more = [`--phases=${phases}`, `--report-junit-path=${junit}`, ...options];
    const command = [
      program,
      `--config-file=${config}`,
      "run",
      `${url}${name === "gateway-bff" ? "/openapi/gateway-bff.json" : "/openapi.json"}`,
      ...more,
    ];
    await rm(junit, { force: true });
    return run(command, { signal, output, cwd: cacheFolder("schemathesis") }); // It leaves a folder there.
  };
  // The examples create objects. Then there are IDs for requests about them.
  await runPhases("examples", "ignore");
  const code = await runPhases("examples,coverage,fuzzing", "inherit");
  const { statuses } = await fetchSeen(url);
  const counts = Object.entries(statuses).map(([status, count]) => `${status} × ${count}`);
  report(`${name} responded ${counts.join(", ")}`);
  const result = countJunit(await readFile(junit, "utf8"));
  // It may also fail without a test, for instance if it cannot read the document.
  return code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result;
}

/** What the proxy of a service has seen (flows/api-target/proxy.ts). */
interface Seen {
  readonly statuses: Readonly<Record<string, number>>;
  readonly ids: Readonly<Record<string, readonly string[]>>;
}

const fetchSeen = async (url: string): Promise<Seen> => (await fetch(`${url}/.seen`)).json() as Promise<Seen>;

/** Users whom operations like `…/{user_id}:delete` change. The other operations have users who stay as they are. */
const changedMax = 15;

/** Half of the requests use IDs that exist. */
function formatConfig({ userIds }: Target, { ids }: Seen): string {
  const [changed, others] = [userIds.slice(0, changedMax), userIds.slice(changedMax)];
  const known = { ...ids, user_id: others, mode: ["duel"], service: ["account"] };
  const dictionaries = Object.entries(known).flatMap(([name, values]) => [
    `[dictionaries.${name}]`,
    `values = ${JSON.stringify(values)}`,
    `[parameters."path.${name}"]`,
    `dictionary = "${name}"`,
    `probability = 0.5`,
  ]);
  return [
    "[checks]",
    "enabled = false",
    ...checks.map((check) => `${check}.enabled = true`),
    ...dictionaries,
    "[dictionaries.changed_user_id]",
    `values = ${JSON.stringify(changed)}`,
    "[[operations]]",
    `include-path-regex = '${sharedPaths}'`,
    "checks.unsupported_method.enabled = false",
    "checks.allow_header_conformance.enabled = false",
    `parameters."path.user_id" = { dictionary = "changed_user_id", probability = 0.5 }`,
  ].join("\n");
}

/** One operation is one test. */
function countJunit(xml: string): Result {
  const count = (name: string) => Number(new RegExp(`<testsuites [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1] ?? 0);
  const failed = count("failures") + count("errors");
  return { passed: count("tests") - failed, failed, skipped: 0, notes: [] };
}
