/** Redis that writes every change to its append-only file, on loopback, with a password of its own. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Answer, Recipe } from "./engine.ts";
import { findProgram } from "./programs.ts";
import { exchange } from "./wire.ts";

export const redis: Recipe = {
  name: "redis",
  urlVariable: "TEST_REDIS_URL",
  debianPackage: "redis-server",

  locate: () => findProgram("redis", ["redis-server", "valkey-server"]),

  async prepare({ program, home, temporary, settings, keeper }) {
    // The password also tells our server from a stranger who took the port first: he would refuse it.
    const password = randomBytes(18).toString("base64url");
    const configFile = join(keeper.folder, "redis.conf");
    return async (port) => {
      const ours = { bind: "127.0.0.1", port, dir: JSON.stringify(home), requirepass: password };
      const all = { ...ours, daemonize: "no", appendonly: "yes", save: '""', ...settings };
      const text = Object.entries(all).map(([key, value]) => `${key} ${value}\n`);
      await writeFile(configFile, text, { mode: 0o600 });
      return {
        url: `redis://:${password}@127.0.0.1:${port}`,
        commands: [{ file: program.file, args: [configFile], stop: temporary ? "SIGKILL" : "SIGTERM" }],
      };
    };
  },

  ask(url) {
    const credentials = [url.username, url.password].filter((part) => part !== "").map(decodeURIComponent);
    const login = url.password === "" ? "" : request(["AUTH", ...credentials]);
    // PING comes last: a server that is still loading its data describes itself, but refuses this.
    const hello = login + request(["INFO", "server"]) + request(["PING"]);
    return exchange({ url, defaultPort: 6379, tls: url.protocol === "rediss:", hello, read: readAnswers });
  },
};

function request(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

function readAnswers(received: Buffer): Answer | undefined {
  const text = received.toString("utf8");
  const refusal = /^-(.*)\r\n/m.exec(text);
  if (refusal) throw new Error(`it answers: ${refusal[1]}`);
  const version = /^(?:redis|valkey)_version:(\S+)/m.exec(text)?.[1];
  return version !== undefined && text.includes("+PONG\r\n") ? { version } : undefined;
}
