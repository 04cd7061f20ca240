/** What the machine itself must offer: Node, ports, disk. */
import { statfs } from "node:fs/promises";
import { dataFolder, type Holder } from "../data-folder.ts";
import { demoIssuer } from "../dev-env.ts";
import { busyOf, wayOut } from "../ports.ts";
import type { Env, ServiceEntry } from "../services.ts";
import { portsOf, postgresPort, providerPort } from "../settings.ts";
import { about, type Finding } from "./finding.ts";

const nodeMajorMin = 26;

export async function checkNode(): Promise<Finding[]> {
  const { ok, fault } = about("Node");
  const { node } = process.versions;
  if (Number(node.split(".")[0]) >= nodeMajorMin) return [ok(node)];
  return [
    fault(
      `${node} is older than ${nodeMajorMin}`,
      "Run it with `npm run todoke -- …`: that uses the repository's own.",
    ),
  ];
}

export async function checkPorts(env: Env, services: readonly ServiceEntry[], holder?: Holder): Promise<Finding[]> {
  const { ok, warning } = about("ports");
  if (holder) return [ok(`used by the \`todoke dev\` that runs here (process ${holder.pid})`)];
  const own = [...(demoIssuer(env) ? [providerPort(env)] : []), ...(env.DATABASE_URL ? [] : [postgresPort(env)])];
  const ports = [...services.flatMap((entry) => portsOf(entry, env)), ...own];
  const busy = await busyOf(ports);
  if (busy.length === 0) return [ok(`free: ${ports.map((port) => port.number).join(", ")}`)];
  return busy.map((port) => warning(`${port.number} (${port.of}) is in use`, `If not by itself: ${wayOut(port)}`));
}

/** PostgreSQL stops at a full disk. The first is time to act, the second is too late. */
const lowBytes = 2 ** 30;
const emptyBytes = 200 * 2 ** 20;

export async function checkDisk(): Promise<Finding[]> {
  const { ok, warning, fault } = about("disk");
  const { bavail, bsize } = await statfs(dataFolder).catch(() => statfs("."));
  const free = bavail * bsize;
  const says = `${(free / 2 ** 30).toFixed(1)} GB free for ${dataFolder}`;
  if (free >= lowBytes) return [ok(says)];
  return [(free >= emptyBytes ? warning : fault)(says, "Make room: PostgreSQL stops when the disk is full.")];
}
