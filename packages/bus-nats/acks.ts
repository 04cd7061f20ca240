/** The acknowledgements that a consumer sends for a message, and the metadata in their reply subject. */
import { nanos } from "@nats-io/nats-core";
import type { Outcome } from "@todoke/kernel/worker";

export const ack = Buffer.from("+ACK");
const term = Buffer.from("+TERM");
export const inProgress = Buffer.from("+WPI");
/** The redelivery delay after a handler threw or returned too few outcomes. */
export const handlerErrorDelayMs = 1_000;
/** The longest delay of a message: a day. Longer ones belong in a database. */
const delayMaxMs = 86_400_000;

export function nak(delayMs: number): Uint8Array {
  const boundedMs = Math.min(delayMaxMs, Math.max(0, Math.ceil(delayMs) || 0));
  return Buffer.from(boundedMs === 0 ? "-NAK" : `-NAK {"delay":${nanos(boundedMs)}}`);
}

export function ackFor(outcome: Outcome): Uint8Array {
  switch (outcome.kind) {
    case "done":
      return ack;
    case "dead":
      return term;
    case "retry":
    case "release":
      return nak(outcome.delayMs);
  }
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<…>.<time>.<pending>`. Servers with domains put two tokens before
 * the stream, and newer ones add one at the end.
 */
export function parseReply(reply: string): { deliveries: number; sequence: string } {
  const tokens = reply.split(".");
  const from = tokens.length >= 11 ? 6 : 4;
  return { deliveries: Number(tokens[from]), sequence: tokens[from + 1] ?? "" };
}
