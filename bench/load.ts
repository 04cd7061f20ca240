/**
 * Clients of an HTTP service, on loopback, in this process. Written by hand: a client library would take as much of the
 * processor as the service that is measured.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** The bytes of one request, whole. */
export type NextRequest = () => string;

interface Load {
  readonly url: string;
  readonly next: NextRequest;
}

interface Timed extends Load {
  /** How long each took, in milliseconds, is put here. */
  readonly took?: number[];
}

interface Crowd extends Timed {
  readonly connections: number;
  readonly requests: number;
}

/** Sends `requests` by so many connections, each of which sends its next one when it has been answered. */
export async function crowd(load: Crowd): Promise<number> {
  let left = load.requests;
  await withConnections(load.url, load.connections, (connections) =>
    Promise.all(
      connections.map(async (connection) => {
        while (left-- > 0) {
          const startedAt = performance.now();
          await connection.ask(load.next());
          load.took?.push(performance.now() - startedAt);
        }
      }),
    ),
  );
  return load.requests;
}

/** One client alone: how long each of its requests took, in milliseconds. */
export async function oneByOne(load: Load & { requests: number }): Promise<number[]> {
  const times: number[] = [];
  await withConnections(load.url, 1, async ([connection]) => {
    for (let n = 0; n < load.requests; n++) {
      const startedAt = performance.now();
      await connection?.ask(load.next());
      times.push(performance.now() - startedAt);
    }
  });
  return times;
}

/**
 * So many requests a second, whether or not those before are answered: nobody who asks waits for the others. Each takes
 * from the moment at which it should have been sent: one that a slow service keeps from being sent is slow.
 */
export async function steadily(load: Timed & { perSecond: number; seconds: number }): Promise<number> {
  const requests = load.perSecond * load.seconds;
  await withConnections(load.url, 64, async (connections) => {
    const free = [...connections];
    const asking = new Set<Promise<void>>();
    const startedAt = performance.now();
    for (let sent = 0; sent < requests; ) {
      const due = Math.min(requests, Math.ceil(((performance.now() - startedAt) / 1_000) * load.perSecond));
      for (; sent < due && free.length > 0; sent++) {
        const connection = free.shift(); // By turns: a service closes a connection on which nothing is asked.
        if (!connection) break;
        const wantedAt = startedAt + (sent / load.perSecond) * 1_000;
        const asked: Promise<void> = connection.ask(load.next()).then(() => {
          load.took?.push(performance.now() - wantedAt);
          asking.delete(asked);
          free.push(connection);
        });
        asking.add(asked);
      }
      await sleep(1);
    }
    await Promise.all(asking);
  });
  return requests;
}

async function withConnections<T>(url: string, count: number, use: (all: Connection[]) => Promise<T>): Promise<T> {
  const all = await Promise.all(Array.from({ length: count }, () => Connection.open(url)));
  try {
    return await use(all);
  } finally {
    for (const connection of all) connection.close();
  }
}

class Connection {
  readonly #socket: Socket;
  #answer = "";
  #waiting: PromiseWithResolvers<void> | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#read(text));
    socket.on("close", () => this.#waiting?.reject(new Error("the service closed the connection")));
    socket.on("error", () => {}); // "close" follows
  }

  static async open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname).setNoDelay(true);
    await once(socket, "connect");
    return new Connection(socket);
  }

  /** Resolves when it is answered with 200 or 201. */
  ask(request: string): Promise<void> {
    if (this.#socket.destroyed) return Promise.reject(new Error("the service closed the connection"));
    this.#waiting = Promise.withResolvers();
    this.#answer = "";
    this.#socket.write(request, "latin1");
    return this.#waiting.promise;
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#answer = this.#answer === "" ? text : this.#answer + text;
    if (!isWhole(this.#answer)) return;
    if (this.#answer.startsWith("HTTP/1.1 20")) this.#waiting?.resolve();
    else this.#waiting?.reject(new Error(`refused: ${this.#answer}`));
  }
}

/** As Fastify writes it. */
const lengthField = "content-length: ";

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const at = answer.indexOf(lengthField);
  if (at < 0) throw new Error(`an answer without a length: ${answer.slice(0, end)}`);
  return answer.length >= end + 4 + Number.parseInt(answer.slice(at + lengthField.length), 10);
}
