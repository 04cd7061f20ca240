/**
 * An envelope as AMQP carries it: the payload as it is, the event's id as the message id, the rest as headers that any
 * other client can read. Under the exchange the subject is the routing key.
 *
 * A message that waited for its retry comes from another queue, under another key; so it carries its subject with it,
 * and marks of its own (`x-todoke-…`). The broker adds headers too (`x-death`, `x-delivery-count`). None of these is
 * shown to the handler, and an event's own header of such a name does not travel.
 */
import { createHash } from "node:crypto";
import type { Delivery, Envelope } from "@todoke/kernel/bus";
import type { AsyncMessage, Envelope as Properties } from "rabbitmq-client";

export interface Outgoing {
  readonly properties: Properties & { readonly exchange: string; readonly routingKey: string };
  readonly body: Buffer;
  /** Why AMQP can never carry it. */
  readonly impossible?: string | undefined;
}

const subjectMark = "x-todoke-subject";
const retriesMark = "x-todoke-retries";
const waitMark = "x-todoke-wait-ms";

const ownHeaders = /^(event_type|aggregate_key|occurred_at)$/;
const brokerHeaders = /^(x-(todoke-.*|death|(first|last)-death-.*|delivery-count|acquired-count|opt-.*)|B?CC)$/;

/** AMQP keeps ids, keys and names of headers in texts of at most 255 bytes; the client would cut them off in silence. */
const shortBytesMax = 255;
/** All headers travel in one frame of 8 KiB, which must have room for the marks of a retry too. */
const headerBytesMax = 7_000;

export function outgoing(event: Envelope, exchange: string): Outgoing {
  const { buffer, byteOffset, byteLength } = event.payload;
  const headers = headersOf(event);
  return {
    impossible: whyImpossible(event, headers),
    properties: {
      exchange,
      routingKey: event.subject,
      mandatory: true,
      durable: true,
      messageId: event.eventId,
      // Not JSON nor text, even if it were: the client must leave the bytes alone at the other end.
      contentType: "application/octet-stream",
      headers,
    },
    body: Buffer.from(buffer, byteOffset, byteLength),
  };
}

export interface Again {
  /** The queue that takes it next. */
  readonly queue: string;
  /** What is left to wait after that queue. */
  readonly waitMs: number;
}

/** The same message, to be sent by way of another queue: what the broker noted about its first journey is left behind. */
export function again(message: AsyncMessage, { queue, waitMs }: Again): Outgoing {
  const kept = Object.entries(message.headers ?? {}).filter(([name]) => !brokerHeaders.test(name));
  const { contentType, contentEncoding, messageId, timestamp, type, appId, correlationId } = message;
  const properties = { contentType, contentEncoding, messageId, timestamp, type, appId, correlationId };
  return {
    properties: {
      ...Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined)),
      exchange: "",
      routingKey: queue,
      mandatory: true,
      durable: true,
      headers: {
        ...Object.fromEntries(kept),
        [subjectMark]: subjectOf(message),
        [retriesMark]: retriesOf(message) + 1,
        ...(waitMs > 0 && { [waitMark]: waitMs }),
      },
    },
    body: bytesOf(message),
  };
}

export function deliveryOf(message: AsyncMessage): Delivery {
  const own: Record<string, string> = {};
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    if (brokerHeaders.test(name) || typeof value === "object") continue;
    (ownHeaders.test(name) ? own : headers)[name] = String(value);
  }
  const payload = bytesOf(message);
  return {
    eventId: message.messageId || idOf(payload),
    eventType: own.event_type ?? message.type ?? "",
    subject: subjectOf(message),
    aggregateKey: own.aggregate_key ?? "",
    occurredAt: own.occurred_at ?? "",
    headers,
    payload,
    redelivered: message.redelivered || returnsOf(message) > 0 || retriesOf(message) > 0,
  };
}

/** How often the broker took the message back unanswered, or given back, since it came into this queue. */
export function returnsOf({ headers }: AsyncMessage): number {
  return numberOf(headers?.["x-delivery-count"]);
}

/** What is left of a wait longer than the longest step. */
export function waitOf({ headers }: AsyncMessage): number {
  return numberOf(headers?.[waitMark]);
}

const retriesOf = ({ headers }: AsyncMessage): number => numberOf(headers?.[retriesMark]);

const subjectOf = ({ headers, routingKey }: AsyncMessage): string => String(headers?.[subjectMark] ?? routingKey);

const numberOf = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);

function whyImpossible({ eventId, subject }: Envelope, headers: Record<string, string>): string | undefined {
  if (subject === "" || eventId === "") return "its subject or its id is empty";
  const texts = Object.entries(headers).flat();
  if (![eventId, subject, ...texts].every((text) => text.isWellFormed())) return "half a surrogate pair is no Unicode";
  const tooLong = [eventId, subject, ...Object.keys(headers)].find((text) => Buffer.byteLength(text) > shortBytesMax);
  if (tooLong !== undefined) return `"${tooLong.slice(0, 40)}…" is longer than ${shortBytesMax} bytes`;
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 5, 0);
  return bytes > headerBytesMax ? `its headers have ${bytes} bytes, and ${headerBytesMax} is the most` : undefined;
}

function headersOf(event: Envelope): Record<string, string> {
  const headers: Record<string, string> = {
    event_type: event.eventType,
    aggregate_key: event.aggregateKey,
    occurred_at: event.occurredAt,
  };
  for (const [name, value] of Object.entries(event.headers)) {
    if (!ownHeaders.test(name) && !brokerHeaders.test(name)) headers[name] = value;
  }
  return headers;
}

/** Somebody else's message may be called text or JSON, and then the client has decoded it already. */
function bytesOf({ body }: AsyncMessage): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/**
 * A message without an id was not published by us. It still has to reach the handler, which can put it aside, and needs
 * a name for that which is the same whenever it comes, and another message's is not: one made from its bytes.
 */
function idOf(payload: Buffer): string {
  const hex = createHash("sha256").update(payload).digest("hex");
  // A UUID of version 8: "made by a rule of one's own".
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
