/**
 * Tracks which connections have pending responses, and which response is the last of a connection.
 *
 * An executed request must get its response, and no request may get the error of another. Pipelined requests and a stopping
 * process make both hard. Responses leave a connection in the order of its requests, so the newest one stands for all.
 */
import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { perSecond } from "./per-second.ts";
import { problemBody, problemType } from "./problem-handler.ts";
import { tooManyInFlight } from "./problems.ts";
import { newRequestId } from "./request-id.ts";
import { responseHeaders } from "./response-headers.ts";

/** Bounds for one connection, and for all of them together. */
export interface ConnectionBounds {
  /** Requests in flight of one connection. Only a client that pipelines has more than one. */
  readonly inFlightMax: number;
  /** Requests of one connection; the response to the last says "Connection: close". */
  readonly requestsMax: number;
  /** Connections of the listener; one more is closed at once. */
  readonly connectionsMax: number;
}

const defaultBounds: ConnectionBounds = { inFlightMax: 100, requestsMax: 1_000, connectionsMax: 10_000 };

/** Node reads up to 64 KB at once, about 2,000 of the smallest requests. A client that keeps sending is disconnected. */
const ignoredMax = 2_000;

interface Pipeline {
  newest: ServerResponse | undefined;
  /** The one before the newest: the newest may be the broken request. */
  previous: ServerResponse | undefined;
  /** The one with "Connection: close": no response can follow it. */
  last: ServerResponse | undefined;
  broken: boolean;
  /** Admitted, without a response yet. */
  readonly open: Set<ServerResponse>;
  /** All requests so far. */
  requests: number;
  /** The connection has reached a bound: it closes after its pending responses. */
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

  /** "reject" sends a response and closes the connection; "ignore" is a request behind that one, which gets none. */
  admit(response: ServerResponse): "handle" | "reject" | "ignore" {
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
    const isTooMany = open.size > this.#bounds.inFlightMax;
    if (!isTooMany && pipeline.requests < this.#bounds.requestsMax) return "handle";
    pipeline.isFull = true;
    pipeline.requests = this.#bounds.requestsMax; // From here on only ignored requests are counted.
    response.setHeader("connection", "close");
    // Also if a route replaces the header: otherwise a request behind this one would wait forever.
    response.once("finish", () => response.req.socket.end());
    if (!isTooMany) return "handle";
    this.began(response);
    return "reject";
  }

  /** Returns false if the last response is already being sent: this request would get none, so it must not be executed. */
  began(response: ServerResponse): boolean {
    // The request has the socket; a response has none while others wait before it.
    const pipeline = this.#pipelines.get(response.req.socket);
    if (!pipeline) return true;
    if (pipeline.last?.headersSent) return false;
    pipeline.previous = pipeline.newest;
    pipeline.newest = response;
    if (this.#closing) markLast(pipeline);
    return true;
  }

  /** From now on the last response of each connection says "Connection: close". */
  closeAfterResponses(): void {
    this.#closing = true;
    for (const pipeline of this.#pipelines.values()) markLast(pipeline);
  }

  /** Whether the response must say "Connection: close": the process stops, or the connection has reached a bound. */
  closesAfter(response: ServerResponse): boolean {
    return this.#closing || this.#pipelines.get(response.req.socket)?.isFull === true;
  }

  /** Runs `then` once, after every complete request has its response. */
  afterResponses(socket: Socket, then: () => void): void {
    const pipeline = this.#pipelines.get(socket);
    if (!pipeline || pipeline.broken) return;
    pipeline.broken = true;
    const lastInFull = pipeline.newest?.req.complete ? pipeline.newest : pipeline.previous;
    if (isPending(lastInFull)) lastInFull.once("close", then);
    else then();
  }

  /** How many connections have a pending response. */
  get pending(): number {
    return [...this.#pipelines.values()].filter(({ newest }) => isPending(newest)).length;
  }

  /** Closes idle connections, also those that never completed the headers of a request. */
  closeIdle(): void {
    for (const [socket, { newest }] of this.#pipelines) if (!isPending(newest)) socket.destroy();
  }
}

/** Marks the newest response as the last, instead of an earlier one. */
function markLast(pipeline: Pipeline): void {
  const { newest, last } = pipeline;
  if (!newest || newest.headersSent) return;
  last?.removeHeader("connection");
  newest.setHeader("connection", "close");
  pipeline.last = newest;
}

function isPending(response: ServerResponse | undefined): response is ServerResponse {
  return response !== undefined && !response.writableFinished && !response.destroyed;
}

declare module "fastify" {
  interface FastifyInstance {
    readonly connections: Connections;
  }
}

/** The request hook of the app must call `began`: a separate hook would cost time on every request. */
export function trackConnections(app: FastifyInstance, bounds: Partial<ConnectionBounds> = {}): void {
  const all = { ...defaultBounds, ...bounds };
  const connections = new Connections(all);
  app.decorate("connections", connections);
  app.server.on("connection", (socket) => connections.opened(socket));
  app.server.maxConnections = all.connectionsMax;
  const warn = perSecond<string>({ max: 1, write: (message, count) => app.log.warn({ count }, message) });
  app.server.on("drop", () => warn("connections were refused: the limit is reached"));
  // Before the framework sees a request: rejecting one must cost as little as possible.
  const handlers = app.server.listeners("request") as RequestListener[];
  app.server.removeAllListeners("request").on("request", (request, response) => {
    switch (connections.admit(response)) {
      case "handle":
        for (const handle of handlers) handle.call(app.server, request, response);
        break;
      case "reject":
        warn("requests were rejected: too many in flight on one connection");
        reject(response, all.inFlightMax);
    }
  });
}

function reject(response: ServerResponse, inFlightMax: number): void {
  const id = newRequestId();
  const detail = `at most ${inFlightMax} requests in flight per connection; later requests of this connection are not read`;
  const problem = tooManyInFlight(detail, { retryAfterSeconds: 1 });
  const headers = { ...responseHeaders, "x-request-id": id, "content-type": problemType, "retry-after": "1" };
  response.writeHead(problem.status, headers).end(problemBody(problem, id));
}
