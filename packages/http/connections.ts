/**
 * Knows which connections still owe an answer, and when the answer is the last.
 *
 * What was carried out must be answered, and no request may be answered with the fault of another; neither goes without
 * saying when a caller sends requests one behind the other, or when the process stops. Answers leave a connection in the
 * order of its requests, so the newest one tells of all.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

interface Pipeline {
  newest: ServerResponse | undefined;
  /** The one before the newest: the newest may be the very request that broke. */
  previous: ServerResponse | undefined;
  /** The one that says "Connection: close": nothing can be answered after it. */
  last: ServerResponse | undefined;
  broken: boolean;
}

export class Connections {
  readonly #pipelines = new Map<Socket, Pipeline>();
  #closing = false;

  opened(socket: Socket): void {
    this.#pipelines.set(socket, { newest: undefined, previous: undefined, last: undefined, broken: false });
    socket.once("close", () => this.#pipelines.delete(socket));
  }

  /** False when the last answer is on its way: this request would get none, so it must not be carried out. */
  began(response: ServerResponse): boolean {
    // By way of the request: a response has no socket while others wait before it.
    const pipeline = this.#pipelines.get(response.req.socket);
    if (!pipeline) return true;
    if (pipeline.last?.headersSent) return false;
    pipeline.previous = pipeline.newest;
    pipeline.newest = response;
    if (this.#closing) sayLast(pipeline);
    return true;
  }

  /** From now on the last answer of each connection says that it is the last. */
  closeAfterAnswers(): void {
    this.#closing = true;
    for (const pipeline of this.#pipelines.values()) sayLast(pipeline);
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** Runs `then` once every request that was read in full is answered. Asking twice runs it once. */
  afterAnswers(socket: Socket, then: () => void): void {
    const pipeline = this.#pipelines.get(socket);
    if (!pipeline || pipeline.broken) return;
    pipeline.broken = true;
    const lastInFull = pipeline.newest?.req.complete ? pipeline.newest : pipeline.previous;
    if (owes(lastInFull)) lastInFull.once("close", then);
    else then();
  }

  /** How many connections owe an answer. */
  get owing(): number {
    return this.#pipelines.values().reduce((sum, { newest }) => sum + (owes(newest) ? 1 : 0), 0);
  }

  /** Also closes a connection that never sent a byte, or has not finished the headers of its first request. */
  closeIdle(): void {
    for (const [socket, { newest }] of this.#pipelines) if (!owes(newest)) socket.destroy();
  }
}

/** The newest answer becomes the last, and the one that was going to be is not any more. */
function sayLast(pipeline: Pipeline): void {
  const { newest, last } = pipeline;
  if (!newest || newest.headersSent) return;
  last?.removeHeader("connection");
  newest.setHeader("connection", "close");
  pipeline.last = newest;
}

function owes(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished && !response.destroyed;
}

declare module "fastify" {
  interface FastifyInstance {
    readonly connections: Connections;
  }
}

/** Whoever takes a request has to ask `began`: a hook of our own would cost every request one more. */
export function trackConnections(app: FastifyInstance): void {
  const connections = new Connections();
  app.decorate("connections", connections);
  app.server.on("connection", (socket) => connections.opened(socket));
}
