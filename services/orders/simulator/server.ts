/**
 * A broker to test against. It checks signatures, timestamps and nonces (brokers/http/protocol.ts), keeps its order book in a file, and
 * injects faults. `PUT /faults` with a list of names sets the faults of the next orders, one each; `PUT /fills` with
 * {client_order_id, trade_id, qty, price} fills a part of an open order. Only these need no signature.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fault, type FaultPlan, isFault } from "../brokers/faults.ts";
import { headerNames, isSignedBy, type WireOrder } from "../brokers/http/protocol.ts";
import type { Book } from "./book.ts";

export interface SimulatorOptions {
  readonly book: Book;
  readonly secret: string;
  readonly dedupes: boolean;
  readonly windowMs: number;
  readonly plan: FaultPlan;
  /** The delay of slow and late replies. */
  readonly slowMs: number;
  /** How far its clock is ahead of the machine's. */
  readonly clockAheadMs?: number;
}

interface Response {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Undefined: the connection is cut without a reply. */
type Reply = Response | undefined;

const bodyMaxBytes = 64 * 1024;
const pageMax = 100;
const fillsPageMax = 100;

export function simulator(options: SimulatorOptions): Server {
  const { book, secret, dedupes, windowMs, plan, slowMs, clockAheadMs = 0 } = options;
  const now = () => Date.now() + clockAheadMs;

  function refusal(request: IncomingMessage, body: string): Response | undefined {
    const { method = "", url: path = "", headers } = request;
    const timestamp = Number(headers[headerNames.timestamp]);
    const nonce = String(headers[headerNames.nonce]);
    const isSigned = isSignedBy(
      secret,
      { method, path, timestamp, nonce, body },
      String(headers[headerNames.signature]),
    );
    const refused = isSigned ? refusalCode(timestamp, nonce) : "BAD_SIGNATURE";
    book.logRequest({ kind: "request", at: now(), method, path, nonce, timestamp, ...(refused && { refused }) });
    return refused === undefined ? undefined : { status: 401, body: { code: refused } };
  }

  function refusalCode(timestamp: number, nonce: string): string | undefined {
    if (isStale(timestamp)) return "STALE";
    return book.hasSeen(nonce) ? "NONCE_USED" : undefined;
  }

  const isStale = (timestamp: number) => !(Math.abs(now() - timestamp) <= windowMs);

  async function takeOrder(body: string, timestamp: number): Promise<Reply> {
    const sent = JSON.parse(body);
    const fault = plan.next();
    if (fault === "lost-before") return undefined;
    if (fault === "error-before") return { status: 500, body: {} };
    if (fault === "rate-limited") return { status: 429, body: { code: "NOT_TAKEN" }, headers: { "retry-after": "1" } };
    if (fault === "busy") return { status: 503, body: { code: "NOT_TAKEN", why: "busy" } };
    if (fault === "late") await sleep(slowMs, undefined, { ref: false });
    if (isStale(timestamp)) return { status: 401, body: { code: "STALE" } };
    const before = dedupes ? book.find(sent.client_order_id) : undefined;
    if (before) return { status: 409, body: { code: "ALREADY_PROCESSED" } };
    const order = toWireOrder(sent, fault === "reject" ? "a fault rejects this order" : slippageError(sent));
    book.take(order);
    return replyAfterTaking(order, fault);
  }

  async function replyAfterTaking(order: WireOrder, fault: Fault | undefined): Promise<Reply> {
    if (fault === "lost-after") return undefined;
    if (fault === "error-after") return { status: 500, body: {} };
    if (fault === "already") return { status: 409, body: { code: "ALREADY_PROCESSED" } };
    if (fault === "slow") await sleep(slowMs, undefined, { ref: false });
    return order.status === "rejected"
      ? { status: 422, body: { code: "REJECTED", why: order.why } }
      : { status: 201, body: order };
  }

  function toWireOrder(sent: Record<string, string>, rejectedFor: string | undefined): WireOrder {
    const isRejected = rejectedFor !== undefined;
    const { client_order_id = "", instrument = "", side = "", qty = "0", price = null, time_in_force } = sent;
    const isOpen = price !== null && time_in_force === "GTC";
    const broker_order_id = `sim-${book.orders.length + 1}`;
    const taken_at = new Date(now()).toISOString();
    const fill = { trade_id: `${broker_order_id}-1`, qty, price: price ?? "100", filled_at: taken_at };
    return {
      client_order_id,
      broker_order_id,
      instrument,
      side,
      qty,
      filled_qty: isOpen || isRejected ? "0" : qty,
      price: isOpen || isRejected ? null : (price ?? "100"),
      status: isRejected ? "rejected" : isOpen ? "open" : "filled",
      taken_at,
      ...(isRejected && { why: rejectedFor }),
      ...(!isRejected && !isOpen && { fills: [fill] }),
    };
  }

  function cancel(clientOrderId: string): Response {
    const order = book.find(clientOrderId);
    if (!order) return notFound();
    if (order.status === "cancelled") return { status: 200, body: order };
    if (order.status !== "open") return { status: 409, body: { code: "TOO_LATE", why: `it is ${order.status}` } };
    return { status: 200, body: book.cancel(clientOrderId) };
  }

  function listFills(clientOrderId: string, { searchParams }: URL): Response {
    const order = book.find(clientOrderId);
    if (!order) return notFound();
    const after = Number(searchParams.get("after") ?? 0);
    const all = book.fillsOf(clientOrderId);
    const fills = all.slice(after, after + fillsPageMax);
    const next = after + fills.length;
    const { fills: _, ...bare } = order;
    return {
      status: 200,
      body: { order: bare, fills, next: next === 0 ? null : String(next), more: next < all.length },
    };
  }

  const notFound = (): Response => ({ status: 404, body: { code: "NOT_FOUND", at: now() } });

  function list({ searchParams }: URL): Response {
    const since = Number(searchParams.get("since") ?? 0);
    const after = Number(searchParams.get("after") ?? 0);
    const page = book.orders.slice(after, after + pageMax);
    const next = page.length === pageMax ? String(after + pageMax) : null;
    return { status: 200, body: { orders: page.filter((order) => Date.parse(order.taken_at) >= since), next } };
  }

  async function reply(request: IncomingMessage): Promise<Reply> {
    const body = await readBody(request);
    const url = new URL(request.url ?? "", "http://simulator");
    if (request.method === "PUT" && url.pathname === "/faults") {
      plan.queue(...(JSON.parse(body) as string[]).filter(isFault));
      return { status: 200, body: {} };
    }
    if (request.method === "PUT" && url.pathname === "/fills") {
      const { client_order_id, ...fill } = JSON.parse(body);
      book.fill(client_order_id, { ...fill, filled_at: new Date(now()).toISOString() });
      return { status: 200, body: {} };
    }
    const refused = refusal(request, body);
    if (refused) return refused;
    const [, , clientOrderId = "", part] = url.pathname.split("/");
    if (request.method === "POST") return takeOrder(body, Number(request.headers[headerNames.timestamp]));
    if (request.method === "DELETE") return cancel(clientOrderId);
    if (clientOrderId === "") return list(url);
    if (part === "fills") return listFills(clientOrderId, url);
    const order = book.find(clientOrderId);
    return order ? { status: 200, body: order } : notFound();
  }

  const server = createServer((request, response) => {
    reply(request)
      .then((answer) => sendReply(response, answer, new Date(now())))
      .catch(() => request.destroy());
  });
  // Only faults close connections: a keep-alive timeout could close one just as it is used again.
  server.keepAliveTimeout = 0;
  return server;
}

// Market orders are filled this far from the mid price.
const slippageBps = 5;

const slippageError = ({ max_slippage_bps: max }: { readonly max_slippage_bps?: unknown }): string | undefined =>
  typeof max === "number" && max < slippageBps ? "the slippage would exceed max_slippage_bps" : undefined;

function sendReply(response: ServerResponse, reply: Reply, at: Date): void {
  if (!reply) {
    response.destroy();
    return;
  }
  response.writeHead(reply.status, {
    "content-type": "application/json",
    date: at.toUTCString(),
    ...reply.headers,
  });
  response.end(JSON.stringify(reply.body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyMaxBytes) throw new Error("the body is too large");
  }
  return Buffer.concat(chunks).toString("utf8");
}
