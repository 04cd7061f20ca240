/** Redis on loopback, with an append-only file and a random password. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EngineDriver, ServerInfo } from "./engine.ts";
import { findOnPath } from "./find-binary.ts";
import { addressOf, exchange } from "./tcp-exchange.ts";

export const redis: EngineDriver = {
  name: "redis",
  urlVariable: "TEST_REDIS_URL",
  debianPackage: "redis-server",

  findBinary: () => findOnPath("redis", ["redis-server", "valkey-server"]),

  async prepare({ binary, dataFolder, temporary, settings, supervisor }) {
    // The password also distinguishes our server from another that took the port first: that one rejects it.
    const password = randomBytes(18).toString("base64url");
    const configFile = join(supervisor.folder, "redis.conf");
    return async (port) => {
      const ours = { bind: "127.0.0.1", port, dir: JSON.stringify(dataFolder), requirepass: password };
      const all = { ...ours, daemonize: "no", appendonly: "yes", save: '""', ...settings };
      const text = Object.entries(all).map(([key, value]) => `${key} ${value}\n`);
      await writeFile(configFile, text, { mode: 0o600 });
      return {
        url: `redis://:${password}@127.0.0.1:${port}`,
        commands: [{ file: binary.file, args: [configFile], stopSignal: temporary ? "SIGKILL" : "SIGTERM" }],
      };
    };
  },

  probe(url) {
    const credentials = [url.username, url.password].filter((part) => part !== "").map(decodeURIComponent);
    const login = url.password === "" ? "" : encodeCommand(["AUTH", ...credentials]);
    // PING comes last: a server that is still loading its data responds to INFO, but rejects PING.
    const request = login + encodeCommand(["INFO", "server"]) + encodeCommand(["PING"]);
    return exchange({ ...addressOf(url, { defaultPort: 6379, tlsScheme: "rediss:" }), request, parse: parseReplies });
  },
};

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

function parseReplies(received: Buffer): ServerInfo | undefined {
  const text = received.toString("utf8");
  const error = /^-(.*)\r\n/m.exec(text);
  if (error) throw new Error(`it replies: ${error[1]}`);
  const version = /^(?:redis|valkey)_version:(\S+)/m.exec(text)?.[1];
  return version !== undefined && text.includes("+PONG\r\n") ? { version } : undefined;
}
