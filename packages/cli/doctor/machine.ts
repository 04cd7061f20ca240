/** Checks of the machine: Node, ports, disk. */
import { statfs } from "node:fs/promises";
import { type DevProcess, dataFolder } from "../data-folder.ts";
import { demoIssuer } from "../dev-env.ts";
import { findBusyPorts, portRemedy } from "../ports.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { getDatabaseUrl, getPostgresPort, getProviderPort, getServicePorts } from "../settings.ts";
import { type Finding, findingsFor } from "./finding.ts";

/** todoke.js has already rejected an older Node. */
export const checkNode = async (): Promise<Finding[]> => [findingsFor("Node").ok(process.versions.node)];

export async function checkPorts(
  env: Env,
  services: readonly ServiceEntry[],
  runningDev?: DevProcess,
): Promise<Finding[]> {
  const { ok, warning } = findingsFor("ports");
  if (runningDev) return [ok(`used by the \`todoke dev\` that runs here (process ${runningDev.pid})`)];
  // Without any database it is `todoke dev` that would run here.
  const isDev = !services.some((entry) => getDatabaseUrl(entry, env));
  const own = isDev ? [...(demoIssuer(env) ? [getProviderPort(env)] : []), getPostgresPort(env)] : [];
  const ports = [...services.flatMap((entry) => getServicePorts(entry, env)), ...own];
  const busy = await findBusyPorts(ports);
  if (busy.length === 0) return [ok(`free: ${ports.map((port) => port.number).join(", ")}`)];
  return busy.map((port) =>
    warning(`${port.number} (${port.of}) is in use`, `Unless Todoke uses it, ${portRemedy(port)}`),
  );
}

/** PostgreSQL stops when the disk is full. Below the first limit is a warning, below the second a fault. */
const lowDiskBytes = 2 ** 30;
const fullDiskBytes = 200 * 2 ** 20;

export async function checkDisk(): Promise<Finding[]> {
  const { ok, warning, fault } = findingsFor("disk");
  const { bavail, bsize } = await statfs(dataFolder).catch(() => statfs("."));
  const free = bavail * bsize;
  const says = `${(free / 2 ** 30).toFixed(1)} GB free for ${dataFolder}`;
  if (free >= lowDiskBytes) return [ok(says)];
  return [(free >= fullDiskBytes ? warning : fault)(says, "Free disk space: PostgreSQL stops when the disk is full.")];
}
