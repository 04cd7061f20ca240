/**
 * An envelope as NATS carries it: payload as it is, the rest as headers.
 *
 * The message id is the event's id, so the server tells duplicates. NATS trims header values and ends them at a line
 * break; so what would not survive that travels percent-encoded, and what needs no help is readable by anybody.
 */
import { headers as emptyHeaders, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import type { Delivery, Envelope } from "@todoke/kernel/bus";

const idHeader = "Nats-Msg-Id";
/** Names that the envelope itself uses: a header of that name is replaced by the envelope's field. */
const ownHeaders: ReadonlySet<string> = new Set([idHeader, "event_type", "aggregate_key", "occurred_at"]);

/** Throws on what no header can carry: a name with a colon, half a surrogate pair. */
export function headersOf(event: Envelope): MsgHdrs {
  const headers = emptyHeaders();
  // First, for servers that take the first thing that looks like it.
  headers.append(idHeader, escaped(event.eventId));
  headers.append("event_type", escaped(event.eventType));
  headers.append("aggregate_key", escaped(event.aggregateKey));
  headers.append("occurred_at", escaped(event.occurredAt));
  for (const [name, value] of Object.entries(event.headers)) {
    if (!ownHeaders.has(name)) headers.append(name, escaped(value));
  }
  return headers;
}

export interface Arrival {
  readonly subject: string;
  /** How often the server has sent it, this time included. */
  readonly deliveries: number;
  /** Where it lies in the stream: the name of a message that was published without an id. */
  readonly position: string;
}

export function deliveryOf(message: Msg, { subject, deliveries, position }: Arrival): Delivery {
  const headers = new Map<string, string>();
  for (const [name, [value = ""]] of message.headers ?? []) headers.set(name, unescaped(value));
  const own = (name: string) => {
    const value = headers.get(name) ?? "";
    headers.delete(name);
    return value;
  };
  return {
    eventId: own(idHeader) || position,
    eventType: own("event_type"),
    subject,
    aggregateKey: own("aggregate_key"),
    occurredAt: own("occurred_at"),
    headers: Object.fromEntries(headers),
    payload: message.data,
    redelivered: deliveries > 1,
  };
}

/** Anything but visible ASCII and spaces between them; "%" always, so that reading back is never in doubt. */
const needsEscape = /^ | $|[^ -$&-~]/;
const escapes = /^ | $|[^ -$&-~]/gu;

const escaped = (value: string): string =>
  needsEscape.test(value) ? value.replace(escapes, (character) => encodeURIComponent(character)) : value;

function unescaped(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // Not ours: somebody else published it, and meant what it says.
    return value;
  }
}
