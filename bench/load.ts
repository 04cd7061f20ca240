/** HTTP clients on loopback. Written by hand, because a client library would use as much CPU as the measured service. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Returns the text of one complete request. */
export type NextRequest = () => string;

interface Load {
  readonly url: string;
  readonly nextRequest: NextRequest;
}

interface TimedLoad extends Load {
  /** Receives the duration of each request. */
  readonly durationsMs?: number[];
}

interface ConcurrentLoad extends TimedLoad {
  readonly connections: number;
  readonly requests: number;
}

/** Sends `requests` over `connections`; each connection sends its next request after a response. */
export async function sendConcurrently(load: ConcurrentLoad): Promise<number> {
  let left = load.requests;
  await withConnections(load.url, load.connections, (connections) =>
    Promise.all(
      connections.map(async (connection) => {
        while (left-- > 0) {
          const startedAt = performance.now();
          await connection.send(load.nextRequest());
          load.durationsMs?.push(performance.now() - startedAt);
        }
      }),
    ),
  );
  return load.requests;
}

/** Sends requests one after the other over one connection and returns their durations in milliseconds. */
export async function sendSequentially(load: Load & { requests: number }): Promise<number[]> {
  const times: number[] = [];
  await withConnections(load.url, 1, async ([connection]) => {
    for (let n = 0; n < load.requests; n++) {
      const startedAt = performance.now();
      await connection?.send(load.nextRequest());
      times.push(performance.now() - startedAt);
    }
  });
  return times;
}

/**
 * Sends `perSecond` requests, whether or not earlier ones are answered. A duration counts from the time at which the request
 * was due, so that a request that a slow service delays counts as slow.
 */
export async function sendAtRate(load: TimedLoad & { perSecond: number; seconds: number }): Promise<number> {
  const requests = load.perSecond * load.seconds;
  await withConnections(load.url, 64, async (connections) => {
    const free = [...connections];
    const inFlight = new Set<Promise<void>>();
    const startedAt = performance.now();
    for (let sent = 0; sent < requests; ) {
      const due = Math.min(requests, Math.ceil(((performance.now() - startedAt) / 1_000) * load.perSecond));
      for (; sent < due && free.length > 0; sent++) {
        const connection = free.shift(); // In turns: a service closes an idle connection.
        if (!connection) break;
        const dueAt = startedAt + (sent / load.perSecond) * 1_000;
        const request: Promise<void> = connection.send(load.nextRequest()).then(() => {
          load.durationsMs?.push(performance.now() - dueAt);
          inFlight.delete(request);
          free.push(connection);
        });
        inFlight.add(request);
      }
      await sleep(1);
    }
    await Promise.all(inFlight);
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
  #response = "";
  #pending: PromiseWithResolvers<void> | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#read(text));
    socket.on("close", () => this.#pending?.reject(new Error("the service closed the connection")));
    socket.on("error", () => {}); // "close" follows
  }

  static async open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname).setNoDelay(true);
    await once(socket, "connect");
    return new Connection(socket);
  }

  /** Resolves on 200 or 201 and rejects on any other status. */
  send(request: string): Promise<void> {
    if (this.#socket.destroyed) return Promise.reject(new Error("the service closed the connection"));
    this.#pending = Promise.withResolvers();
    this.#response = "";
    this.#socket.write(request, "latin1");
    return this.#pending.promise;
  }

  close(): void {
    this.#pending = undefined;
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#response = this.#response === "" ? text : this.#response + text;
    if (!isComplete(this.#response)) return;
    if (this.#response.startsWith("HTTP/1.1 20")) this.#pending?.resolve();
    else this.#pending?.reject(new Error(`unexpected response: ${this.#response}`));
  }
}

/** As Fastify writes it. */
const lengthField = "content-length: ";

function isComplete(response: string): boolean {
  const end = response.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const at = response.indexOf(lengthField);
  if (at < 0) throw new Error(`response without a content-length: ${response.slice(0, end)}`);
  return response.length >= end + 4 + Number.parseInt(response.slice(at + lengthField.length), 10);
}
