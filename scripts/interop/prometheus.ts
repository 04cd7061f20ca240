/**
 * Prometheus with our configuration, alerts and dashboard: the one on PATH, or of the Debian package. It scrapes all services under a
 * small load, and answers the query of every panel.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { findExecutable } from "@todoke/engines";
import { rows } from "../deploy/dashboard/panels.ts";
import { check, root } from "../test/command.ts";
import { findEngines } from "../test/engines.ts";
import { failed, passed, type Result, sum } from "../test/result.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

const folder = join(root, "deploy/prometheus");

export async function prometheus(signal: AbortSignal): Promise<Result> {
  const bin = await findFolder(signal);
  const promtool = join(bin, "promtool");
  report((await outputOf([promtool, "--version"], { signal })).split("\n")[0] ?? "");
  const results: Result[] = [];
  for (const args of [
    ["check", "config", join(folder, "prometheus.yaml")],
    ["test", "rules", join(folder, "rules-test.yaml")],
  ]) {
    report(`promtool ${args.slice(0, 2).join(" ")}`);
    results.push(await check([promtool, ...args], signal));
  }
  return sum([...results, ...(await scrapeServices(bin, signal))]);
}

/** Where prometheus and promtool are. The package is not installed: it would start a server. */
async function findFolder(signal: AbortSignal): Promise<string> {
  const installed = findExecutable("prometheus");
  if (installed && findExecutable("promtool")) return dirname(installed);
  const cache = cacheFolder("prometheus");
  const bin = join(cache, "usr/bin");
  if (globSync(join(bin, "prometheus")).length > 0) return bin;
  const advice = "Install Prometheus so that prometheus and promtool are on PATH.";
  const [apt, dpkg] = [findProgram("apt-get", advice), findProgram("dpkg-deb", advice)];
  report("downloading the Debian package of Prometheus");
  await outputOf([apt, "download", "prometheus"], { signal, cwd: cache });
  const [file = ""] = globSync("prometheus_*.deb", { cwd: cache });
  await outputOf([dpkg, "-x", join(cache, file), cache], { signal });
  return bin;
}

/** As Grafana fills in its variables, at a scrape each second. */
const fillIn = (expr: string) => expr.replaceAll("$__rate_interval", "20s").replaceAll("$service", "[a-z-]+");

const waitMaxMs = 120_000;

async function scrapeServices(bin: string, signal: AbortSignal): Promise<Result[]> {
  await using engines = findEngines(signal, ["postgres"]);
  await engines.find();
  Object.assign(process.env, engines.urls());
  const { startMonitored } = await import(pathToFileURL(join(root, "flows/monitored.ts")).href);
  await using services: Monitored = await startMonitored();
  await using server = await startPrometheus(bin, services.opsUrls);

  /** Asks until nothing is missing, under load all the time. */
  async function untilNone(what: string, findMissing: () => Promise<readonly string[]>): Promise<Result> {
    const deadline = Date.now() + waitMaxMs;
    for (;;) {
      signal.throwIfAborted();
      await services.makeLoad();
      const missing = await findMissing();
      if (missing.length === 0 || Date.now() > deadline) {
        report(missing.length === 0 ? what : `not so: ${what}: ${missing.join("; ")}`);
        return missing.length === 0 ? passed : failed;
      }
      await delay(200);
    }
  }
  const panels = rows.flatMap(({ title: row, panels }) => panels.map((panel) => ({ row, ...panel })));
  return [
    await untilNone(`${services.opsUrls.length} targets are up`, async () => {
      const { activeTargets } = await server.get<{ activeTargets: Target[] }>("targets");
      const down = activeTargets.filter(({ health }) => health !== "up");
      return activeTargets.length === services.opsUrls.length
        ? down.map(({ scrapeUrl, lastError }) => `${scrapeUrl} ${lastError}`)
        : ["targets"];
    }),
    await untilNone("every rule is evaluated without an error", async () => {
      const { groups } = await server.get<{ groups: { rules: LoadedRule[] }[] }>("rules");
      const rules = groups.flatMap((group) => group.rules);
      return rules.length === 0
        ? ["rules"]
        : rules
            .filter(({ health }) => health !== "ok")
            .map(({ name, health, lastError = "" }) => `${name} is ${health} ${lastError}`);
    }),
    await untilNone(`none of ${panels.length} panels is empty`, async () => {
      const empty: string[] = [];
      for (const { row, title, targets } of panels) {
        const answers = await Promise.all(targets.map(([expr]) => server.query(fillIn(expr))));
        if (answers.every((answer) => answer.length === 0)) empty.push(`${row}: ${title}`);
      }
      return empty;
    }),
  ];
}

/** What flows/monitored.ts starts. */
interface Monitored extends AsyncDisposable {
  readonly opsUrls: readonly string[];
  makeLoad(): Promise<void>;
}

interface Target {
  readonly scrapeUrl: string;
  readonly health: string;
  readonly lastError: string;
}

interface LoadedRule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

async function startPrometheus(bin: string, opsUrls: readonly string[]) {
  await using started = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "todoke-prometheus-"));
  started.defer(() => rm(dir, { recursive: true, force: true }));
  const config = await readFile(join(folder, "prometheus.yaml"), "utf8");
  const targets = opsUrls.map((url) => `          - ${new URL(url).host}\n`).join("");
  const ours = config.replaceAll("interval: 15s", "interval: 1s").replace(/( {10}- 127\.0\.0\.1:\d+ #.*\n)+/, targets);
  await writeFile(join(dir, "prometheus.yaml"), ours);
  await copyFile(join(folder, "rules.yaml"), join(dir, "rules.yaml"));
  const port = await freePort();
  const args = [
    `--config.file=${dir}/prometheus.yaml`,
    `--storage.tsdb.path=${dir}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--log.level=warn",
  ];
  const child = spawn(join(bin, "prometheus"), args, { stdio: ["ignore", "inherit", "inherit"] });
  const exited = once(child, "exit");
  started.defer(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/-/ready`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error("Prometheus did not start");
    await delay(100);
  }
  const get = async <Data>(path: string): Promise<Data> => {
    const { status, data, error } = (await (await fetch(`${url}/api/v1/${path}`)).json()) as {
      status: string;
      data: Data;
      error?: string;
    };
    if (status !== "success") throw new Error(`Prometheus rejects ${path}: ${error}`);
    return data;
  };
  const all = started.move();
  return {
    get,
    query: async (expr: string) => (await get<{ result: unknown[] }>(`query?query=${encodeURIComponent(expr)}`)).result,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function freePort(): Promise<number> {
  await using server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}
