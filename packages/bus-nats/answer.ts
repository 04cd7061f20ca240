/** What a consumer says to the server about a message, and what the address of the answer says about the message. */
import { nanos } from "@nats-io/nats-core";
import type { Outcome } from "@todoke/kernel/worker";

export const ack = Buffer.from("+ACK");
const term = Buffer.from("+TERM");
export const inProgress = Buffer.from("+WPI");
/** How long a batch is left alone after its handler threw, or said too little. */
export const rethinkMs = 1_000;
/** The longest that a message can be put off: a day. Who waits longer does so in a database. */
const delayMaxMs = 86_400_000;

export function nak(inMs: number): Uint8Array {
  const delayMs = Math.min(delayMaxMs, Math.max(0, Math.ceil(inMs) || 0));
  return Buffer.from(delayMs === 0 ? "-NAK" : `-NAK {"delay":${nanos(delayMs)}}`);
}

export function answerTo(outcome: Outcome | undefined): Uint8Array {
  switch (outcome?.kind) {
    case "done":
      return ack;
    case "dead":
      return term;
    case "retry":
    case "release":
      return nak(outcome.inMs);
    case undefined:
      // The handler answered too few: what it did not mention, it did not do.
      return nak(rethinkMs);
  }
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<…>.<time>.<pending>`; servers with domains put two
 * tokens before the stream, and newer ones one at the end.
 */
export function parseReply(reply: string): { deliveries: number; sequence: string } {
  const tokens = reply.split(".");
  const from = tokens.length >= 11 ? 6 : 4;
  return { deliveries: Number(tokens[from]), sequence: tokens[from + 1] ?? "" };
}
