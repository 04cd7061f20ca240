/** The alert rules as Prometheus reads them: promtool on PATH, or the one of the Debian package. */
import { globSync } from "node:fs";
import { join } from "node:path";
import { findExecutable } from "@todoke/engines";
import { check } from "../test/command.ts";
import { type Result, sum } from "../test/result.ts";
import { cacheFolder, findProgram, outputOf, report } from "./peer.ts";

const rules = "deploy/prometheus/rules.yaml";
const ruleTests = "deploy/prometheus/rules-test.yaml";

export async function promtool(signal: AbortSignal): Promise<Result> {
  const program = findExecutable("promtool") ?? (await unpack(signal));
  report((await outputOf([program, "--version"], { signal })).split("\n")[0] ?? "");
  const commands = [
    [program, "check", "rules", rules],
    [program, "test", "rules", ruleTests],
  ];
  const results: Result[] = [];
  for (const command of commands) {
    report(`promtool ${command.slice(1).join(" ")}`);
    results.push(await check(command, signal));
  }
  return sum(results);
}

/** The package is not installed: it would start a server. */
async function unpack(signal: AbortSignal): Promise<string> {
  const folder = cacheFolder("promtool");
  const program = join(folder, "usr/bin/promtool");
  if (globSync(program).length > 0) return program;
  const advice = "Install Prometheus so that promtool is on PATH.";
  const [apt, dpkg] = [findProgram("apt-get", advice), findProgram("dpkg-deb", advice)];
  report("downloading the Debian package of Prometheus");
  await outputOf([apt, "download", "prometheus"], { signal, cwd: folder });
  const [file = ""] = globSync("prometheus_*.deb", { cwd: folder });
  await outputOf([dpkg, "-x", join(folder, file), folder], { signal });
  return program;
}
