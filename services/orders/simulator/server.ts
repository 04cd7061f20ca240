/**
 * A broker to test against: checks signatures, timestamps and nonces as brokers/http/protocol.ts says it, keeps its books
 * in a file, and fails as it is told to. `PUT /faults` with a list of names says what goes wrong with the orders that
 * come next, one each; it alone needs no signature.
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
  /** How long slow and late answers take. */
  readonly slowMs: number;
  /** Ahead of the machine's clock, to see whether that is noticed. */
  readonly clockAheadMs?: number;
}

interface Answer {
  readonly status: number;
  readonly said: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Undefined: the connection is cut without an answer. */
type Reply = Answer | undefined;

const bodyMaxBytes = 64 * 1024;
const pageMax = 100;

export function simulator(options: SimulatorOptions): Server {
  const { book, secret, dedupes, windowMs, plan, slowMs, clockAheadMs = 0 } = options;
  const now = () => Date.now() + clockAheadMs;

  function refusal(request: IncomingMessage, body: string): Answer | undefined {
    const { method = "", url: path = "", headers } = request;
    const timestamp = Number(headers[headerNames.timestamp]);
    const nonce = String(headers[headerNames.nonce]);
    const isSigned = isSignedBy(
      secret,
      { method, path, timestamp, nonce, body },
      String(headers[headerNames.signature]),
    );
    const refused = isSigned ? refusalOf(timestamp, nonce) : "BAD_SIGNATURE";
    book.note({ kind: "request", at: now(), method, path, nonce, timestamp, ...(refused && { refused }) });
    return refused === undefined ? undefined : { status: 401, said: { code: refused } };
  }

  function refusalOf(timestamp: number, nonce: string): string | undefined {
    if (isStale(timestamp)) return "STALE";
    return book.hasSeen(nonce) ? "NONCE_USED" : undefined;
  }

  const isStale = (timestamp: number) => !(Math.abs(now() - timestamp) <= windowMs);

  async function takeOrder(body: string, timestamp: number): Promise<Reply> {
    const sent = JSON.parse(body);
    const fault = plan.next();
    if (fault === "lost-before") return undefined;
    if (fault === "error-before") return { status: 500, said: {} };
    if (fault === "rate-limited") return { status: 429, said: { code: "NOT_TAKEN" }, headers: { "retry-after": "1" } };
    if (fault === "busy") return { status: 503, said: { code: "NOT_TAKEN", why: "busy" } };
    if (fault === "late") await sleep(slowMs, undefined, { ref: false });
    if (isStale(timestamp)) return { status: 401, said: { code: "STALE" } };
    const before = dedupes ? book.find(sent.client_order_id) : undefined;
    if (before) return { status: 409, said: { code: "ALREADY_PROCESSED" } };
    const order = orderOf(sent, fault === "reject" ? "a fault rejects this order" : slippageRefusal(sent));
    book.take(order);
    return answerAfterTaking(order, fault);
  }

  async function answerAfterTaking(order: WireOrder, fault: Fault | undefined): Promise<Reply> {
    if (fault === "lost-after") return undefined;
    if (fault === "error-after") return { status: 500, said: {} };
    if (fault === "already") return { status: 409, said: { code: "ALREADY_PROCESSED" } };
    if (fault === "slow") await sleep(slowMs, undefined, { ref: false });
    return order.status === "rejected"
      ? { status: 422, said: { code: "REJECTED", why: order.why } }
      : { status: 201, said: order };
  }

  function orderOf(sent: Record<string, string>, rejectedFor: string | undefined): WireOrder {
    const isRejected = rejectedFor !== undefined;
    const { client_order_id = "", instrument = "", side = "", qty = "0", price = null, time_in_force } = sent;
    const isOpen = price !== null && time_in_force === "GTC";
    return {
      client_order_id,
      broker_order_id: `sim-${book.orders.length + 1}`,
      instrument,
      side,
      qty,
      filled_qty: isOpen || isRejected ? "0" : qty,
      price: isOpen || isRejected ? null : (price ?? "100"),
      status: isRejected ? "rejected" : isOpen ? "open" : "filled",
      taken_at: new Date(now()).toISOString(),
      ...(isRejected && { why: rejectedFor }),
    };
  }

  function cancel(clientOrderId: string): Answer {
    const order = book.find(clientOrderId);
    if (!order) return notFound();
    if (order.status === "cancelled") return { status: 200, said: order };
    if (order.status !== "open") return { status: 409, said: { code: "TOO_LATE", why: `it is ${order.status}` } };
    return { status: 200, said: book.cancel(clientOrderId) };
  }

  const notFound = (): Answer => ({ status: 404, said: { code: "NOT_FOUND", at: now() } });

  function list({ searchParams }: URL): Answer {
    const since = Number(searchParams.get("since") ?? 0);
    const after = Number(searchParams.get("after") ?? 0);
    const page = book.orders.slice(after, after + pageMax);
    const next = page.length === pageMax ? String(after + pageMax) : null;
    return { status: 200, said: { orders: page.filter((order) => Date.parse(order.taken_at) >= since), next } };
  }

  async function reply(request: IncomingMessage): Promise<Reply> {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? "", "http://simulator");
    if (request.method === "PUT" && url.pathname === "/faults") {
      plan.queue(...(JSON.parse(body) as string[]).filter(isFault));
      return { status: 200, said: {} };
    }
    const refused = refusal(request, body);
    if (refused) return refused;
    const [, , clientOrderId = ""] = url.pathname.split("/");
    if (request.method === "POST") return takeOrder(body, Number(request.headers[headerNames.timestamp]));
    if (request.method === "DELETE") return cancel(clientOrderId);
    if (clientOrderId === "") return list(url);
    const order = book.find(clientOrderId);
    return order ? { status: 200, said: order } : notFound();
  }

  const server = createServer((request, response) => {
    reply(request)
      .then((answer) => tell(response, answer, new Date(now())))
      .catch(() => request.destroy());
  });
  // It hangs up only when it is told to: a connection that ends just as it is used again would be a fault that nobody asked for.
  server.keepAliveTimeout = 0;
  return server;
}

// What it fills orders at the market's price at is so far from the middle of its market.
const slippageBps = 5;

const slippageRefusal = ({ max_slippage_bps: max }: { readonly max_slippage_bps?: unknown }): string | undefined =>
  typeof max === "number" && max < slippageBps ? "the slippage would exceed max_slippage_bps" : undefined;

function tell(response: ServerResponse, answer: Reply, at: Date): void {
  if (!answer) {
    response.destroy();
    return;
  }
  response.writeHead(answer.status, {
    "content-type": "application/json",
    date: at.toUTCString(),
    ...answer.headers,
  });
  response.end(JSON.stringify(answer.said));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyMaxBytes) throw new Error("the body is too long");
  }
  return Buffer.concat(chunks).toString("utf8");
}
