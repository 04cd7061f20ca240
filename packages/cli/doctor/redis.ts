/**
 * Whether Redis answers, and keeps what it is told. A few commands over a plain socket: a client library would be a
 * dependency for the sake of PING.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { reasonOf } from "../faults.ts";
import { withoutSecrets } from "../settings.ts";
import { about, type Finding } from "./finding.ts";

interface Given {
  /** That names it. */
  readonly variable: string;
  readonly url: string | undefined;
  readonly signal: AbortSignal;
}

export async function checkRedis({ variable, url: text, signal }: Given): Promise<Finding[]> {
  const { ok, fault } = about("Redis");
  if (!text) return [ok("none given, and none is needed")];
  const url = URL.parse(text);
  if (!url || !["redis:", "rediss:"].includes(url.protocol)) {
    return [fault(`${variable} is not a redis:// URL`, "It should look like redis://user:password@host:6379.")];
  }
  try {
    await using redis = await openRedis(url, signal);
    await redis.ask("PING");
    return await settings(redis, withoutSecrets(text));
  } catch (error) {
    return [fault(`${withoutSecrets(text)}: ${reasonOf(error)}`, `Start it, or correct ${variable}.`)];
  }
}

async function settings(redis: Redis, where: string): Promise<Finding[]> {
  const { ok, warning } = about("Redis");
  const server = /redis_version:(\S+)/.exec(await redis.ask("INFO", "server").catch(() => ""))?.[1];
  const findings = [ok(`${server ?? "answers"} at ${where}`)];
  const setting = (name: string) => redis.ask("CONFIG", "GET", name).then((pair) => pair.split("\n")[1]);
  try {
    const [appendOnly, policy] = [await setting("appendonly"), await setting("maxmemory-policy")];
    if (appendOnly !== "yes") {
      findings.push(warning("appendonly is off: a restart forgets every session and ticket", "Set `appendonly yes`."));
    }
    if (policy !== "noeviction") {
      const says = `maxmemory-policy is ${policy}: under pressure it drops sessions and tickets unasked`;
      findings.push(warning(says, "Set `maxmemory-policy noeviction`."));
    }
  } catch (error) {
    const todo = "See yourself that appendonly is yes and maxmemory-policy is noeviction.";
    findings.push(warning(`it does not show its settings (${reasonOf(error)})`, todo));
  }
  return findings;
}

interface Redis extends AsyncDisposable {
  /** A reply as text; the items of an array stand on lines of their own. */
  ask(...words: string[]): Promise<string>;
}

async function openRedis(url: URL, signal: AbortSignal): Promise<Redis> {
  const place = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || 6379) };
  const secure = url.protocol === "rediss:";
  const socket: Socket = secure ? connectTls({ ...place, servername: place.host }) : connect(place);
  signal.addEventListener("abort", () => socket.destroy(new Error("did not answer in time")));
  await once(socket, secure ? "secureConnect" : "connect");
  socket.on("error", () => {}); // the reading below hears it too
  const chunks = socket.setEncoding("utf8")[Symbol.asyncIterator]();
  const redis: Redis = {
    ask: (...words) => {
      socket.write(`*${words.length}\r\n${words.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join("")}`);
      return readReply(chunks);
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  };
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  if (password) await redis.ask("AUTH", ...(user ? [user] : []), password);
  return redis;
}

/** One question is asked at a time, so a reply is whole as soon as it parses. */
async function readReply(chunks: AsyncIterator<string>): Promise<string> {
  for (let text = ""; text.length < 65_536; ) {
    const { value, done } = await chunks.next();
    if (done) throw new Error("it closed the connection");
    text += value;
    const reply = parseReply(text);
    if (reply !== undefined) return reply;
  }
  throw new Error("it is not Redis that answers there");
}

/** RESP: +text, -error, $length text, *count items. Undefined while something is missing. */
function parseReply(text: string): string | undefined {
  const end = text.indexOf("\r\n");
  if (end < 0) return undefined;
  const [kind, head, rest] = [text[0], text.slice(1, end), text.slice(end + 2)];
  if (kind === "-") throw new Error(head);
  if (kind === "+" || kind === ":") return head;
  if (kind === "$") return rest.length >= Number(head) + 2 ? rest.slice(0, Number(head)) : undefined;
  if (kind === "*") {
    const lines = rest.split("\r\n").slice(0, -1);
    return lines.length >= Number(head) * 2 ? lines.filter((_, at) => at % 2 === 1).join("\n") : undefined;
  }
  throw new Error("it is not Redis that answers there");
}
