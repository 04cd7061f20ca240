/**
 * RabbitMQ, on loopback, with everything that it would otherwise share with other brokers of this machine made its own:
 * node name, data, logs, plugins, Erlang cookie, and the port mapper epmd, which by habit outlives its broker.
 */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Answer, NotFound, type Recipe, type Site } from "./engine.ts";
import { freePort } from "./free-port.ts";
import type { Command } from "./keeper.ts";
import { findProgram, isExecutable, searchPath, which } from "./programs.ts";
import { exchange } from "./wire.ts";

/** What Debian puts on PATH is a wrapper that serves root and the user rabbitmq only. This is what it wraps. */
const debianServer = "/usr/lib/rabbitmq/bin/rabbitmq-server";

export const rabbitmq: Recipe = {
  name: "rabbitmq",
  urlVariable: "TEST_RABBITMQ_URL",
  debianPackage: "rabbitmq-server",

  async locate() {
    if (which("epmd") === undefined)
      return new NotFound(
        "rabbitmq",
        "No epmd (a part of Erlang) on PATH.",
        "Install rabbitmq-server, or name a running one in TEST_RABBITMQ_URL.",
      );
    return isExecutable(debianServer)
      ? { file: debianServer, origin: `PATH (${debianServer})` }
      : findProgram("rabbitmq", ["rabbitmq-server"]);
  },

  async prepare(site) {
    // Data belongs to a node name: the same folder must give the same name, and another folder another.
    const node = `todoke-${createHash("sha256").update(site.home).digest("hex").slice(0, 12)}`;
    return async (port) => {
      const epmdPort = await freePort();
      await writeConfig(site, port);
      const env = await environment({ site, node, epmdPort });
      return { url: `amqp://guest:guest@127.0.0.1:${port}`, node, commands: [epmd(epmdPort), server(site, env)] };
    };
  },

  ask: (url) =>
    exchange({
      url,
      defaultPort: 5672,
      tls: url.protocol === "amqps:",
      hello: protocolHeader,
      read: readConnectionStart,
    }),
};

function epmd(port: number): Command {
  return {
    file: which("epmd") ?? "epmd",
    args: ["-port", String(port), "-address", "127.0.0.1"], // without -daemon it stays our child
    stop: "SIGKILL",
  };
}

function server({ program, temporary }: Site, env: Record<string, string>): Command {
  return { file: program.file, args: [], env, stop: temporary ? "SIGKILL" : "SIGTERM" };
}

async function writeConfig({ keeper, settings }: Site, port: number): Promise<void> {
  const all = { "listeners.tcp.1": `127.0.0.1:${port}`, "log.console": "true", "log.file": "false", ...settings };
  const text = Object.entries(all).map(([key, value]) => `${key} = ${value}\n`);
  await writeFile(join(keeper.folder, "rabbitmq.conf"), text);
  await writeFile(join(keeper.folder, "rabbitmq-env.conf"), ""); // instead of the machine's own
  await writeFile(join(keeper.folder, "enabled_plugins"), "[].\n");
}

async function environment(of: { site: Site; node: string; epmdPort: number }): Promise<Record<string, string>> {
  const { folder } = of.site.keeper;
  const logs = join(folder, "log");
  await mkdir(logs, { recursive: true });
  return {
    PATH: searchPath(),
    LANG: "C.UTF-8",
    HOME: folder, // Erlang makes its cookie here
    ERL_EPMD_PORT: String(of.epmdPort),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_NODENAME: `${of.node}@localhost`,
    RABBITMQ_DIST_PORT: String(await freePort()),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
    RABBITMQ_MNESIA_BASE: of.site.home,
    RABBITMQ_LOG_BASE: logs,
    RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq.conf"),
    RABBITMQ_CONF_ENV_FILE: join(folder, "rabbitmq-env.conf"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "enabled_plugins"),
    // The start script then becomes the Erlang machine itself, rather than waiting beside it: its pid is the broker's.
    RUNNING_UNDER_SYSTEMD: "true",
  };
}

const protocolHeader = Buffer.from([...Buffer.from("AMQP"), 0, 0, 9, 1]);

/** The broker opens with connection.start: frame header (7 bytes), class 10, method 10, version, then its properties. */
function readConnectionStart(received: Buffer): Answer | undefined {
  if (received.length >= 4 && received.toString("latin1", 0, 4) === "AMQP") throw new Error("not an AMQP 0-9-1 broker");
  if (received.length < 7 || received.length < 7 + received.readUInt32BE(3)) return undefined;
  if (received.readUInt32BE(7) !== 0x000a_000a) throw new Error("not an AMQP 0-9-1 broker");
  const tableSize = received.readUInt32BE(13);
  const properties = readTexts(received.subarray(17, 17 + tableSize));
  // A cluster is called after its first node, but at the host's full name rather than the one we gave: "todoke-1f…@host".
  const [node = ""] = (properties.get("cluster_name") ?? "").split("@");
  return { version: properties.get("version") ?? "unknown", node };
}

/** The texts of an AMQP table; RabbitMQ's greeting has besides them only inner tables and booleans. */
function readTexts(table: Buffer): Map<string, string> {
  const texts = new Map<string, string>();
  for (let at = 0; at < table.length; ) {
    const nameEnd = at + 1 + table.readUInt8(at);
    const name = table.toString("utf8", at + 1, nameEnd);
    const type = String.fromCharCode(table.readUInt8(nameEnd));
    const value = nameEnd + 1;
    if (type !== "S" && type !== "F" && type !== "t") break;
    const size = type === "t" ? 1 : 4 + table.readUInt32BE(value);
    if (type === "S") texts.set(name, table.toString("utf8", value + 4, value + size));
    at = value + size;
  }
  return texts;
}
