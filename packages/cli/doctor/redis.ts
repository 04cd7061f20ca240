/** Checks whether Redis responds and keeps its data. It speaks the protocol itself: a script could not run CONFIG. */
import { exchange } from "@todoke/engines";
import { explainConnectionError, parseServerUrl } from "@todoke/kernel/server-url";
import { findPrimary, parseRedisUrl, type RedisUrl } from "@todoke/redis";
import { formatError } from "../errors.ts";
import { redactUrl } from "../settings.ts";
import { type Finding, findingsFor, unreachableRemedy } from "./finding.ts";

/** How long a Sentinel may take to name the primary. */
const timeoutMs = 3_000;

export async function checkRedis(variable: string, given: string | undefined): Promise<Finding[]> {
  const { ok, fault } = findingsFor("Redis");
  if (!given) return [ok("REDIS_URL is not set, and not needed")];
  if (!["redis", "rediss"].includes(parseServerUrl(given)?.scheme ?? "")) {
    return [fault(`${variable} is not a redis:// URL`, "It should look like redis://user:password@host:6379.")];
  }
  try {
    const server = await readServer(parseRedisUrl(given));
    return [ok(`${server.version ?? "Redis"} at ${redactUrl(given)}`), ...checkSettings(server, parseRedisUrl(given))];
  } catch (cause) {
    const error = explainConnectionError(cause, "Redis", given);
    const todo = unreachableRemedy(error, variable) ?? `Start it, or correct ${variable}.`;
    return [fault(`${redactUrl(given)}: ${formatError(error)}`, todo)];
  }
}

function checkSettings({ appendOnly, policy, replicasMin, error }: RedisServer, { sentinel }: RedisUrl): Finding[] {
  const { warning } = findingsFor("Redis");
  if (appendOnly === undefined || policy === undefined) {
    const todo = "Check yourself that appendonly is yes and maxmemory-policy is noeviction.";
    return [warning(`it does not show its settings (${error})`, todo)];
  }
  const findings: Finding[] = [];
  if (appendOnly !== "yes") {
    findings.push(warning("appendonly is off: a restart loses every session and ticket", "Set `appendonly yes`."));
  }
  if (policy !== "noeviction") {
    const says = `maxmemory-policy is ${policy}: when memory is full, sessions and tickets are dropped`;
    findings.push(warning(says, "Set `maxmemory-policy noeviction`."));
  }
  if (sentinel && replicasMin === "0") {
    const says = "min-replicas-to-write is 0: a primary that is cut off goes on to accept what a failover discards";
    findings.push(warning(says, "Set `min-replicas-to-write 1` and `min-replicas-max-lag 10` on every server."));
  }
  return findings;
}

interface RedisServer {
  readonly version: string | undefined;
  readonly appendOnly: string | undefined;
  readonly policy: string | undefined;
  /** How many replicas must be connected for a write. */
  readonly replicasMin: string | undefined;
  /** The error reply to INFO or CONFIG, if there is one. */
  readonly error: string | undefined;
}

async function readServer(url: RedisUrl): Promise<RedisServer> {
  const { host, port } = await findPrimary(url, timeoutMs);
  const { username: user, password } = url.login;
  const commands = [
    ...(password ? [["AUTH", ...(user ? [user] : []), password]] : []),
    ["PING"],
    ["INFO", "server"],
    ["CONFIG", "GET", "appendonly"],
    ["CONFIG", "GET", "maxmemory-policy"],
    ["CONFIG", "GET", "min-replicas-to-write"],
    ["PING", "done"],
  ];
  const request = commands.map(encodeCommand).join("");
  return exchange({ host, port, tls: url.tls, request, parse: parseReplies });
}

const encodeCommand = (words: readonly string[]): string =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;

function parseReplies(received: Buffer): RedisServer | undefined {
  const text = received.toString("latin1");
  if (!/^[+-]/.test(text)) throw new Error("it is not Redis that responds there");
  const refused = /^(?:\+OK\r\n)?-(.*)\r\n/.exec(text); // the reply to AUTH or PING
  if (refused) throw new Error(refused[1]);
  if (!text.endsWith("$4\r\ndone\r\n")) return undefined;
  const setting = (name: string) => new RegExp(`${name}\r\n\\$\\d+\r\n(.*)\r\n`).exec(text)?.[1];
  return {
    version: /redis_version:(\S+)/.exec(text)?.[1],
    appendOnly: setting("appendonly"),
    policy: setting("maxmemory-policy"),
    replicasMin: setting("min-replicas-to-write"),
    error: /^-(.*)\r$/m.exec(text)?.[1],
  };
}
