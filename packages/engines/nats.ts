/** NATS with JetStream, on loopback. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Answer, Recipe } from "./engine.ts";
import { findProgram } from "./programs.ts";
import { exchange } from "./wire.ts";

export const nats: Recipe = {
  name: "nats",
  urlVariable: "TEST_NATS_URL",
  debianPackage: "nats-server",

  locate: () => findProgram("nats", ["nats-server"]),

  async prepare({ program, home, temporary, settings, keeper }) {
    const node = `todoke-${randomBytes(6).toString("hex")}`;
    const configFile = join(keeper.folder, "nats.conf");
    return async (port) => {
      await writeFile(configFile, config({ port, node, home, settings }));
      return {
        url: `nats://127.0.0.1:${port}`,
        node,
        commands: [{ file: program.file, args: ["-c", configFile], stop: temporary ? "SIGKILL" : "SIGTERM" }],
      };
    };
  },

  /** The server speaks first, in clear text even where TLS follows: `INFO {"server_name":…,"version":…}`. */
  ask: (url) => exchange({ url, defaultPort: 4222, tls: false, read: readInfo }),
};

interface Config {
  readonly port: number;
  readonly node: string;
  readonly home: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** A setting "jetstream.max_file_store" goes into the block of that name, others to the top. */
function config({ port, node, home, settings }: Config): string {
  const inJetStream = Object.entries(settings).filter(([key]) => key.startsWith("jetstream."));
  const atTop = Object.entries(settings).filter(([key]) => !key.startsWith("jetstream."));
  return [
    `host: "127.0.0.1"`,
    `port: ${port}`,
    `server_name: ${JSON.stringify(node)}`,
    ...atTop.map(([key, value]) => `${key}: ${value}`),
    `jetstream {`,
    `  store_dir: ${JSON.stringify(home)}`,
    ...inJetStream.map(([key, value]) => `  ${key.slice("jetstream.".length)}: ${value}`),
    `}`,
    ``,
  ].join("\n");
}

function readInfo(received: Buffer): Answer | undefined {
  const end = received.indexOf("\r\n");
  if (end < 0) return undefined;
  const line = received.toString("utf8", 0, end);
  if (!line.startsWith("INFO {")) throw new Error("not a NATS server");
  const info: { version: string; server_name: string } = JSON.parse(line.slice("INFO ".length));
  return { version: info.version, node: info.server_name };
}
