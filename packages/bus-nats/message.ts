/**
 * Converts between envelopes and NATS messages: the payload is unchanged, all other fields are headers.
 *
 * The message id is the event id, so that the server detects duplicates. NATS trims header values and ends them at a line
 * break, so values that would not survive this are percent-encoded. All others stay readable.
 */
import { headers as emptyHeaders, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import type { Delivery, Envelope } from "@todoke/kernel/bus";

const idHeader = "Nats-Msg-Id";
/** Headers for fields of the envelope. A header of the event with such a name is dropped. */
const envelopeHeaders: ReadonlySet<string> = new Set([idHeader, "event_type", "aggregate_key", "occurred_at"]);

/** Throws for headers that cannot be sent: a name with a colon, a lone surrogate. */
export function toHeaders(event: Envelope): MsgHdrs {
  const headers = emptyHeaders();
  // First, because some servers use the first header that resembles it.
  headers.append(idHeader, encodeValue(event.eventId));
  headers.append("event_type", encodeValue(event.eventType));
  headers.append("aggregate_key", encodeValue(event.aggregateKey));
  headers.append("occurred_at", encodeValue(event.occurredAt));
  for (const [name, value] of Object.entries(event.headers)) {
    if (!envelopeHeaders.has(name)) headers.append(name, encodeValue(value));
  }
  return headers;
}

export interface ReceivedMessage {
  readonly subject: string;
  /** How often the server has delivered it, including this time. */
  readonly deliveries: number;
  /** The position in the stream, used as the event id of a message that has none. */
  readonly position: string;
}

export function toDelivery(message: Msg, { subject, deliveries, position }: ReceivedMessage): Delivery {
  const headers = new Map<string, string>();
  for (const [name, [value = ""]] of message.headers ?? []) headers.set(name, decodeValue(value));
  const take = (name: string) => {
    const value = headers.get(name) ?? "";
    headers.delete(name);
    return value;
  };
  return {
    eventId: take(idHeader) || position,
    eventType: take("event_type"),
    subject,
    aggregateKey: take("aggregate_key"),
    occurredAt: take("occurred_at"),
    headers: Object.fromEntries(headers),
    payload: message.data,
    redelivered: deliveries > 1,
  };
}

/** Everything but visible ASCII and inner spaces; always "%", so that decoding is unambiguous. */
const needsEncoding = /^ | $|[^ -$&-~]/;
const encodedCharacters = /^ | $|[^ -$&-~]/gu;

const encodeValue = (value: string): string =>
  needsEncoding.test(value) ? value.replace(encodedCharacters, (character) => encodeURIComponent(character)) : value;

function decodeValue(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // Not percent-encoded: another program published it.
    return value;
  }
}
