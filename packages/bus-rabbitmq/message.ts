/**
 * Converts between envelopes and AMQP messages: the payload is unchanged, the event id is the message id, the subject is the
 * routing key, and all other fields are headers that any client can read.
 *
 * A message from a retry queue has another routing key, so its subject is in a header, beside other headers of the bus
 * (`x-todoke-…`). The broker adds headers too (`x-death`, `x-delivery-count`). The handler sees none of these, and a header of
 * an event with such a name is dropped.
 */
import { createHash } from "node:crypto";
import type { Delivery, Envelope } from "@todoke/kernel/bus";
import type { AsyncMessage, Envelope as Properties } from "rabbitmq-client";

export interface OutgoingMessage {
  readonly properties: Properties & { readonly exchange: string; readonly routingKey: string };
  readonly body: Buffer;
  /** Why it can never be sent over AMQP. */
  readonly unsendable?: string | undefined;
}

const subjectHeader = "x-todoke-subject";
const retriesHeader = "x-todoke-retries";
const waitHeader = "x-todoke-wait-ms";

const envelopeHeaders = /^(event_type|aggregate_key|occurred_at)$/;
const brokerHeaders = /^(x-(todoke-.*|death|(first|last)-death-.*|delivery-count|acquired-count|opt-.*)|B?CC)$/;

/** The limit of AMQP for ids, keys and header names. The client would truncate them silently. */
const shortStringBytesMax = 255;
/** All headers are in one frame of 8 KiB, which must also have room for the headers of a retry. */
const headerBytesMax = 7_000;

export function toOutgoing(event: Envelope, exchange: string): OutgoingMessage {
  const { buffer, byteOffset, byteLength } = event.payload;
  const headers = toHeaders(event);
  return {
    unsendable: findUnsendable(event, headers),
    properties: {
      exchange,
      routingKey: event.subject,
      mandatory: true,
      durable: true,
      messageId: event.eventId,
      // Even for JSON or text: the receiving client must not decode the bytes.
      contentType: "application/octet-stream",
      headers,
    },
    body: Buffer.from(buffer, byteOffset, byteLength),
  };
}

export interface Requeue {
  readonly queue: string;
  /** The delay that is left after that queue. */
  readonly waitMs: number;
}

/** Copies a message for another queue, without the headers that the broker added. */
export function toRequeued(message: AsyncMessage, { queue, waitMs }: Requeue): OutgoingMessage {
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
        [subjectHeader]: readSubject(message),
        [retriesHeader]: countRetries(message) + 1,
        ...(waitMs > 0 && { [waitHeader]: waitMs }),
      },
    },
    body: readBytes(message),
  };
}

export function toDelivery(message: AsyncMessage): Delivery {
  const fields: Record<string, string> = {};
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers ?? {})) {
    if (brokerHeaders.test(name) || typeof value === "object") continue;
    (envelopeHeaders.test(name) ? fields : headers)[name] = String(value);
  }
  const payload = readBytes(message);
  return {
    eventId: message.messageId || deriveId(payload),
    eventType: fields.event_type ?? message.type ?? "",
    subject: readSubject(message),
    aggregateKey: fields.aggregate_key ?? "",
    occurredAt: fields.occurred_at ?? "",
    headers,
    payload,
    redelivered: message.redelivered || countRequeues(message) > 0 || countRetries(message) > 0,
  };
}

/** How often the message was requeued since it came into this queue. */
export function countRequeues({ headers }: AsyncMessage): number {
  return toCount(headers?.["x-delivery-count"]);
}

/** The rest of a delay that is longer than the longest step. */
export function readWaitMs({ headers }: AsyncMessage): number {
  return toCount(headers?.[waitHeader]);
}

const countRetries = ({ headers }: AsyncMessage): number => toCount(headers?.[retriesHeader]);

const readSubject = ({ headers, routingKey }: AsyncMessage): string => String(headers?.[subjectHeader] ?? routingKey);

const toCount = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);

function findUnsendable({ eventId, subject }: Envelope, headers: Record<string, string>): string | undefined {
  if (subject === "" || eventId === "") return "its subject or its id is empty";
  const texts = Object.entries(headers).flat();
  if (![eventId, subject, ...texts].every((text) => text.isWellFormed())) return "it contains a lone surrogate";
  const tooLong = [eventId, subject, ...Object.keys(headers)].find(
    (text) => Buffer.byteLength(text) > shortStringBytesMax,
  );
  if (tooLong !== undefined) return `"${tooLong.slice(0, 40)}…" is longer than ${shortStringBytesMax} bytes`;
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 5, 0);
  return bytes > headerBytesMax ? `its headers have ${bytes} bytes; the limit is ${headerBytesMax}` : undefined;
}

function toHeaders(event: Envelope): Record<string, string> {
  const headers: Record<string, string> = {
    event_type: event.eventType,
    aggregate_key: event.aggregateKey,
    occurred_at: event.occurredAt,
  };
  for (const [name, value] of Object.entries(event.headers)) {
    if (!envelopeHeaders.test(name) && !brokerHeaders.test(name)) headers[name] = value;
  }
  return headers;
}

/** The client has decoded a message of another publisher if its content type is text or JSON. */
function readBytes({ body }: AsyncMessage): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/**
 * Another program published a message without an id. The handler must still get it, so that it can dead-letter it, and needs an
 * id that is the same at every delivery: a hash of the payload.
 */
function deriveId(payload: Buffer): string {
  const hex = createHash("sha256").update(payload).digest("hex");
  // UUID version 8 is for custom formats.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
