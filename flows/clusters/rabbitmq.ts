/**
 * `npm run interop -- clusters-rabbitmq`: grants and notifications on three nodes of RabbitMQ with quorum queues, while nodes are killed,
 * frozen and restarted. It prints how long notifications paused, and exits with 1 if a grant was lost, doubled or refused.
 */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Engine, startEngine } from "@todoke/engines";
import { freePort, until } from "@todoke/kernel/testing";
import { openServiceBus } from "../buses.ts";
import { brokerFaults, runBusFaults, startGrants, wait } from "./faults.ts";

await using parts = new AsyncDisposableStack();
/** Erlang reads its cookie here, which all nodes must share. */
const home = await mkdtemp(join(tmpdir(), "todoke-nodes-"));
parts.defer(() => rm(home, { recursive: true }));
await writeFile(join(home, ".erlang.cookie"), randomBytes(12).toString("hex"), { mode: 0o400 });
const shared = { HOME: home, ERL_EPMD_PORT: String(await startEpmd()) };
const postgres = parts.use(await startEngine("postgres"));
const members = await startCluster();
const urls = members.map(({ engine }) => engine.url);
console.log(`RabbitMQ ${members[0]?.engine.version}, three nodes, quorum queues; PostgreSQL ${postgres.version}`);

interface Member {
  readonly engine: Engine;
  readonly node: string;
}

/** The port mapper of the nodes ends with this process. */
async function startEpmd(): Promise<number> {
  const port = await freePort();
  const args = ["--pdeathsig", "KILL", "epmd", "-port", String(port), "-address", "127.0.0.1"];
  const epmd = spawn("setpriv", args, { stdio: "ignore" });
  parts.defer(() => void epmd.kill("SIGKILL"));
  return port;
}

async function startCluster(): Promise<readonly Member[]> {
  const nodes = [1, 2, 3].map((n) => `todoke${n}-${process.pid}@localhost`);
  const peers = nodes.map((node, n) => [`cluster_formation.classic_config.nodes.${n + 1}`, node]);
  const settings = {
    "cluster_formation.peer_discovery_backend": "classic_config",
    ...Object.fromEntries(peers),
    ...Object.fromEntries(Object.entries(shared).map(([key, value]) => [`env.${key}`, value])),
  };
  const start = async (node: string): Promise<Member> => {
    const engine = await startEngine("rabbitmq", { settings: { ...settings, "env.RABBITMQ_NODENAME": node } });
    parts.use(engine);
    return { engine, node };
  };
  const [first = "", ...others] = nodes;
  return [await start(first), ...(await Promise.all(others.map(start)))];
}

/** What rabbitmqctl prints, as the first node that answers sees it. */
async function control(...args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH ?? "", ...shared, RABBITMQ_CONF_ENV_FILE: "/dev/null" };
  const ask = ({ node }: Member) =>
    promisify(execFile)("/usr/lib/rabbitmq/bin/rabbitmqctl", ["-q", "-n", node, ...args], { env });
  return (await Promise.any(members.map(ask))).stdout;
}

/** The node that leads the queue of notification. */
async function leader(): Promise<Member> {
  const leaders = await control("list_queues", "name", "leader", "--no-table-headers");
  const [, node] = /^todoke\.notification\t(\S+)/m.exec(leaders) ?? [];
  const found = members.find((member) => member.node === node);
  if (!found) throw new Error(`no node leads the queue:\n${leaders}`);
  return found;
}

const busUrl = `amqp://guest:guest@${urls.map((url) => new URL(url).host).join()}`;
const openBus = () => openServiceBus("rabbitmq", busUrl);
const isWhole = async () => {
  const { running_nodes }: { running_nodes: string[] } = JSON.parse(
    await control("cluster_status", "--formatter", "json"),
  );
  return running_nodes.length === members.length;
};
await until("all nodes are in the cluster", isWhole, wait);
const run = parts.use(await startGrants({ databaseUrl: postgres.url, openBus }));

await runBusFaults(
  brokerFaults(
    members.map(({ engine }) => engine),
    async () => (await leader()).engine,
  ),
  run,
);
