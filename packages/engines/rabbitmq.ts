/**
 * RabbitMQ on loopback. It shares nothing with other RabbitMQ servers of this machine: it has its own node name, data,
 * logs, plugins, Erlang cookie and port mapper (epmd), which would otherwise outlive the server.
 */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type EngineDriver, EngineNotFound, type EngineSetup, type ServerInfo } from "./engine.ts";
import { findExecutable, findOnPath, isExecutable, searchPath } from "./find-binary.ts";
import { findFreePort } from "./ports.ts";
import type { Command } from "./supervisor-process.ts";
import { addressOf, exchange } from "./tcp-exchange.ts";

/**
 * Settings of this form are variables of the environment: a node of a cluster has a name (`env.RABBITMQ_NODENAME`), and shares the port
 * mapper (`env.ERL_EPMD_PORT`), which is then not started here, and the cookie.
 */
const envPrefix = "env.";

/** The server itself. On PATH Debian has a wrapper that only root and the user rabbitmq can run. */
const debianServer = "/usr/lib/rabbitmq/bin/rabbitmq-server";

export const rabbitmq: EngineDriver = {
  name: "rabbitmq",
  urlVariable: "TEST_RABBITMQ_URL",
  debianPackage: "rabbitmq-server",

  async findBinary() {
    if (findExecutable("epmd") === undefined)
      return new EngineNotFound(
        "No epmd (a part of Erlang) on PATH. Install rabbitmq-server, or name a running one in TEST_RABBITMQ_URL.",
      );
    return isExecutable(debianServer)
      ? { file: debianServer, origin: `PATH (${debianServer})` }
      : findOnPath("rabbitmq", ["rabbitmq-server"]);
  },

  async prepare(setup) {
    // The data is bound to the node name, so the name is derived from the data folder.
    const node = `todoke-${createHash("sha256").update(setup.dataFolder).digest("hex").slice(0, 12)}`;
    const given = givenEnvironment(setup.settings);
    return async (port) => {
      const epmdPort = await findFreePort();
      await writeConfig(setup, port);
      const env = { ...(await buildEnvironment({ setup, node, epmdPort })), ...given };
      return {
        url: `amqp://guest:guest@127.0.0.1:${port}`,
        // The nodes of a cluster report its name, not theirs.
        ...(!("RABBITMQ_NODENAME" in given) && { node }),
        commands: [...("ERL_EPMD_PORT" in given ? [] : [epmdCommand(epmdPort)]), serverCommand(setup, env)],
      };
    };
  },

  probe: (url) =>
    exchange({
      ...addressOf(url, { defaultPort: 5672, tlsScheme: "amqps:" }),
      request: protocolHeader,
      parse: parseConnectionStart,
    }),
};

function epmdCommand(port: number): Command {
  return {
    file: findExecutable("epmd") ?? "epmd",
    args: ["-port", String(port), "-address", "127.0.0.1"], // without -daemon it stays our child
    stopSignal: "SIGKILL",
  };
}

function serverCommand({ binary, temporary }: EngineSetup, env: Record<string, string>): Command {
  return { file: binary.file, args: [], env, stopSignal: temporary ? "SIGKILL" : "SIGTERM" };
}

async function writeConfig({ supervisor, settings }: EngineSetup, port: number): Promise<void> {
  const all = { "listeners.tcp.1": `127.0.0.1:${port}`, "log.console": "true", "log.file": "false", ...settings };
  const text = Object.entries(all)
    .filter(([key]) => !key.startsWith(envPrefix))
    .map(([key, value]) => `${key} = ${value}\n`);
  await writeFile(join(supervisor.folder, "rabbitmq.conf"), text);
  await writeFile(join(supervisor.folder, "rabbitmq-env.conf"), ""); // replaces the one of the machine
  await writeFile(join(supervisor.folder, "enabled_plugins"), "[].\n");
}

const givenEnvironment = (settings: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(settings)
      .filter(([key]) => key.startsWith(envPrefix))
      .map(([key, value]) => [key.slice(envPrefix.length), value]),
  );

async function buildEnvironment(of: {
  setup: EngineSetup;
  node: string;
  epmdPort: number;
}): Promise<Record<string, string>> {
  const { folder } = of.setup.supervisor;
  const logs = join(folder, "log");
  await mkdir(logs, { recursive: true });
  return {
    PATH: searchPath(),
    LANG: "C.UTF-8",
    HOME: folder, // Erlang creates its cookie here
    ERL_EPMD_PORT: String(of.epmdPort),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `${of.node}@localhost`,
    RABBITMQ_DIST_PORT: String(await findFreePort()),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
    RABBITMQ_MNESIA_BASE: of.setup.dataFolder,
    RABBITMQ_LOG_BASE: logs,
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq.conf"),
    RABBITMQ_CONF_ENV_FILE: join(folder, "rabbitmq-env.conf"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "enabled_plugins"),
    // Makes the start script exec the Erlang VM, so that the pid of the script is the pid of the server.
    RUNNING_UNDER_SYSTEMD: "true",
  };
}

const protocolHeader = Buffer.from([...Buffer.from("AMQP"), 0, 0, 9, 1]);

/** The server starts with connection.start: frame header (7 bytes), class 10, method 10, version, server properties. */
function parseConnectionStart(received: Buffer): ServerInfo | undefined {
  if (received.length >= 4 && received.toString("latin1", 0, 4) === "AMQP") throw new Error("not an AMQP 0-9-1 server");
  if (received.length < 7 || received.length < 7 + received.readUInt32BE(3)) return undefined;
  if (received.readUInt32BE(7) !== 0x000a_000a) throw new Error("not an AMQP 0-9-1 server");
  const tableSize = received.readUInt32BE(13);
  const properties = parseStringFields(received.subarray(17, 17 + tableSize));
  // The cluster is named after its first node, with the full host name instead of ours: "todoke-1f…@host".
  const [node = ""] = (properties.get("cluster_name") ?? "").split("@");
  return { version: properties.get("version") ?? "unknown", node };
}

/** The string fields of an AMQP table. The server properties of RabbitMQ contain only strings, tables and booleans. */
function parseStringFields(table: Buffer): Map<string, string> {
  const fields = new Map<string, string>();
  for (let at = 0; at < table.length; ) {
    const nameEnd = at + 1 + table.readUInt8(at);
    const name = table.toString("utf8", at + 1, nameEnd);
    const type = String.fromCharCode(table.readUInt8(nameEnd));
    const value = nameEnd + 1;
    if (type !== "S" && type !== "F" && type !== "t") break;
    const size = type === "t" ? 1 : 4 + table.readUInt32BE(value);
    if (type === "S") fields.set(name, table.toString("utf8", value + 4, value + size));
    at = value + size;
  }
  return fields;
}
