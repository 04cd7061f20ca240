/**
 * Opens the door, and closes it in order: what was accepted is answered, nobody is kept waiting for ever.
 *
 * On `stopping`: readiness says no (readiness.ts), answers carry "Connection: close", and after a grace in which load
 * balancers look elsewhere no connection is accepted any more. Connections that owe no answer are closed, the others
 * when they have given it; at the deadline they are cut.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpApp } from "@todoke/http";

export interface ServeOptions {
  /** 0: any free one. */
  readonly port: number;
  /** Loopback unless said otherwise: to be reachable from elsewhere is a decision. */
  readonly host?: string;
  readonly stopping: AbortSignal;
  /** How long load balancers take to notice that this process is not ready. */
  readonly graceMs?: number;
  /** How long, after that, requests in flight may take. */
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
  app.connections.closeAfterAnswers();
  await sleep(graceMs);
  const sweep = setInterval(() => app.connections.closeIdle(), sweepMs);
  const deadline = setTimeout(() => {
    app.log.warn({ connections: app.connections.owing }, "requests were cut: they took longer than the stop may take");
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
