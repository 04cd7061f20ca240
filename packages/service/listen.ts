/**
 * Listens, and stops in order: every accepted request gets its response, within a deadline.
 *
 * On `stopping`: /readyz fails (readiness.ts), responses carry "Connection: close", and after a grace period for load balancers
 * no connection is accepted. Connections without a request in flight are closed at once, the others after their
 * last response; at the deadline they are cut.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpApp } from "@todoke/http";

export interface ServeOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Loopback by default: other machines reach the service only if an operator decides so. */
  readonly host?: string;
  readonly stopping: AbortSignal;
  /** How long load balancers need to notice that this process is not ready. */
  readonly graceMs?: number;
  /** How long requests in flight may take after that. */
  readonly deadlineMs?: number;
}

export interface Serving {
  /** "http://127.0.0.1:8082" */
  readonly url: string;
  /** Resolves when the last connection is closed. */
  readonly closed: Promise<void>;
}

export async function serve(app: HttpApp, options: ServeOptions): Promise<Serving> {
  const { port, host = "127.0.0.1", stopping } = options;
  const url = await app.listen({ port, host });
  const closed = aborted(stopping).then(() => close(app, options));
  return { url, closed };
}

const sweepMs = 50;

async function close(app: HttpApp, { graceMs = 0, deadlineMs = 10_000 }: ServeOptions): Promise<void> {
  app.connections.closeAfterResponses();
  await sleep(graceMs);
  const sweep = setInterval(() => app.connections.closeIdle(), sweepMs);
  const deadline = setTimeout(() => {
    app.log.warn({ connections: app.connections.pending }, "requests in flight were cut at the deadline of the stop");
    app.server.closeAllConnections();
  }, deadlineMs);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
