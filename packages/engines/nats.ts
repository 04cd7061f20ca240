/** NATS with JetStream, on loopback. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EngineDriver, ServerInfo } from "./engine.ts";
import { findOnPath } from "./find-binary.ts";
import { addressOf, exchange } from "./tcp-exchange.ts";

export const nats: EngineDriver = {
  name: "nats",
  urlVariable: "TEST_NATS_URL",
  debianPackage: "nats-server",

  findBinary: () => findOnPath("nats", ["nats-server"]),

  async prepare({ binary, dataFolder, temporary, settings, supervisor, host }) {
    const address = host?.address ?? "127.0.0.1";
    const [file = "", ...args] = [...(host?.enter ?? []), binary.file, "-c"];
    const node = `todoke-${randomBytes(6).toString("hex")}`;
    const configFile = join(supervisor.folder, "nats.conf");
    return async (port) => {
      await writeFile(configFile, formatConfig({ address, port, node, dataFolder, settings }));
      return {
        url: `nats://${address}:${port}`,
        node,
        commands: [{ file, args: [...args, configFile], stopSignal: temporary ? "SIGKILL" : "SIGTERM" }],
      };
    };
  },

  /** The server sends `INFO {"server_name":…,"version":…}` first, in clear text even if TLS follows. */
  probe: (url) => exchange({ ...addressOf(url, { defaultPort: 4222 }), parse: parseInfo }),
};

interface Config {
  readonly address: string;
  readonly port: number;
  readonly node: string;
  readonly dataFolder: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** A setting such as "jetstream.max_file_store" goes into the jetstream block, any other to the top level. */
function formatConfig({ address, port, node, dataFolder, settings }: Config): string {
  const jetStreamSettings = Object.entries(settings).filter(([key]) => key.startsWith("jetstream."));
  const topLevelSettings = Object.entries(settings).filter(([key]) => !key.startsWith("jetstream."));
  return [
    `host: "${address}"`,
    `port: ${port}`,
    `server_name: ${JSON.stringify(node)}`,
    ...topLevelSettings.map(([key, value]) => `${key}: ${value}`),
    `jetstream {`,
    `  store_dir: ${JSON.stringify(dataFolder)}`,
    ...jetStreamSettings.map(([key, value]) => `  ${key.slice("jetstream.".length)}: ${value}`),
    `}`,
    ``,
  ].join("\n");
}

function parseInfo(received: Buffer): ServerInfo | undefined {
  const end = received.indexOf("\r\n");
  if (end < 0) return undefined;
  const line = received.toString("utf8", 0, end);
  if (!line.startsWith("INFO {")) throw new Error("not a NATS server");
  const info: { version: string; server_name: string } = JSON.parse(line.slice("INFO ".length));
  return { version: info.version, node: info.server_name };
}
