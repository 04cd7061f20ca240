/**
 * Knows which connections still owe an answer, and when the answer is the last.
 *
 * What was carried out must be answered, and no request may be answered with the fault of another; neither goes without
 * saying when a caller sends requests one behind the other, or when the process stops. Answers leave a connection in the
 * order of its requests, so the newest one tells of all.
 */
import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { answerHeaders } from "./answer-headers.ts";
import { perSecond } from "./per-second.ts";
import { bodyOf, problemType } from "./problem-handler.ts";
import { tooManyInFlight } from "./problems.ts";
import { newRequestId } from "./request-id.ts";

/** What one connection, and all of them together, may ask of the process. */
export interface ConnectionBounds {
  /** Requests of one connection that are not answered yet. More than one only of a client that pipelines. */
  readonly inFlightMax: number;
  /** Requests of one connection; the last of them is answered with "Connection: close". */
  readonly requestsMax: number;
  /** Connections of the whole listener; one more is closed at once. */
  readonly connectionsMax: number;
}

const defaultBounds: ConnectionBounds = { inFlightMax: 100, requestsMax: 1_000, connectionsMax: 10_000 };

/** Node reads up to 64 KB at once, about 2,000 of the smallest requests. A client that goes on sending is cut off. */
const ignoredMax = 2_000;

interface Pipeline {
  newest: ServerResponse | undefined;
  /** The one before the newest: the newest may be the very request that broke. */
  previous: ServerResponse | undefined;
  /** The one that says "Connection: close": nothing can be answered after it. */
  last: ServerResponse | undefined;
  broken: boolean;
  /** Admitted and not answered yet. */
  readonly open: Set<ServerResponse>;
  /** All requests so far. */
  requests: number;
  /** The connection has had what it may: it closes after the answers that it is owed. */
  isFull: boolean;
}

export class Connections {
  readonly #pipelines = new Map<Socket, Pipeline>();
  readonly #bounds: ConnectionBounds;
  #closing = false;

  constructor(bounds: ConnectionBounds = defaultBounds) {
    this.#bounds = bounds;
  }

  opened(socket: Socket): void {
    const pipeline: Pipeline = {
      newest: undefined,
      previous: undefined,
      last: undefined,
      broken: false,
      open: new Set(),
      requests: 0,
      isFull: false,
    };
    this.#pipelines.set(socket, pipeline);
    socket.once("close", () => this.#pipelines.delete(socket));
  }

  /** "refuse" closes the connection with an answer; "ignore" is a request behind that one, which gets none. */
  admit(response: ServerResponse): "handle" | "refuse" | "ignore" {
    const pipeline = this.#pipelines.get(response.req.socket);
    if (!pipeline) return "handle";
    pipeline.requests++;
    if (pipeline.isFull) {
      if (pipeline.requests > this.#bounds.requestsMax + ignoredMax) response.req.socket.destroy();
      return "ignore";
    }
    const { open } = pipeline;
    open.add(response);
    response.once("close", () => open.delete(response));
    const isTooMuch = open.size > this.#bounds.inFlightMax;
    if (!isTooMuch && pipeline.requests < this.#bounds.requestsMax) return "handle";
    pipeline.isFull = true;
    pipeline.requests = this.#bounds.requestsMax; // From here on only those that are ignored are counted.
    response.setHeader("connection", "close");
    // Also where a route has put another header in its place: a request behind this one would wait for ever.
    response.once("finish", () => response.req.socket.end());
    if (!isTooMuch) return "handle";
    this.began(response);
    return "refuse";
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

  /** Whether the answer has to say "Connection: close": the process stops, or the connection has had what it may. */
  closesAfter(response: ServerResponse): boolean {
    return this.#closing || this.#pipelines.get(response.req.socket)?.isFull === true;
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
export function trackConnections(app: FastifyInstance, bounds: Partial<ConnectionBounds> = {}): void {
  const all = { ...defaultBounds, ...bounds };
  const connections = new Connections(all);
  app.decorate("connections", connections);
  app.server.on("connection", (socket) => connections.opened(socket));
  app.server.maxConnections = all.connectionsMax;
  const tell = perSecond<string>({ max: 1, write: (why, count) => app.log.warn({ count }, why) });
  app.server.on("drop", () => tell("connections were refused: there are as many as may be"));
  // Before the framework sees a request: what is too much must cost as little as possible.
  const handlers = app.server.listeners("request") as RequestListener[];
  app.server.removeAllListeners("request").on("request", (request, response) => {
    switch (connections.admit(response)) {
      case "handle":
        for (const handle of handlers) handle.call(app.server, request, response);
        break;
      case "refuse":
        tell("requests were refused: too many in flight on one connection");
        refuse(response, all.inFlightMax);
    }
  });
}

function refuse(response: ServerResponse, inFlightMax: number): void {
  const id = newRequestId();
  const detail = `no more than ${inFlightMax} requests of one connection at a time; those behind this one are not read`;
  const problem = tooManyInFlight(detail, { retryAfterSeconds: 1 });
  const headers = { ...answerHeaders, "x-request-id": id, "content-type": problemType, "retry-after": "1" };
  response.writeHead(problem.status, headers).end(bodyOf(problem, id));
}
