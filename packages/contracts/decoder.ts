/**
 * From bytes back to an event. It is whole, or it is refused: bytes that are well formed but lack what the schema says
 * is always there (an empty message is well formed) never reach a handler. Fields that this build does not know stay
 * with the message, unread.
 */
import { type DescField, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { EventNotDecodable } from "./faults.ts";
import { isInstant } from "./time.ts";

export type Decode = (bytes: Uint8Array) => Message;

export function decoderFor(schema: DescMessage): Decode {
  return (bytes) => {
    const message = readMessage(schema, bytes);
    const values: Message & Record<string, unknown> = message;
    for (const field of schema.fields) {
      const why = faultOf(field, values[field.localName]);
      if (why) throw new EventNotDecodable({ eventType: schema.name, field: field.name, why });
    }
    if (values.eventType !== schema.name) {
      throw new EventNotDecodable({ eventType: schema.name, field: "event_type", why: `says ${values.eventType}` });
    }
    return message;
  };
}

function readMessage(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    const why = `cannot be read from these ${bytes.length} bytes: ${cause instanceof Error ? cause.message : cause}`;
    throw new EventNotDecodable({ eventType: schema.name, why, cause });
  }
}

function faultOf(field: DescField, value: unknown): string | undefined {
  const optional = field.proto.proto3Optional;
  if (value === undefined) return optional ? undefined : "is missing";
  if (value === "" && !optional) return "is missing";
  if (field.fieldKind === "message") return faultOfTime(value as Timestamp);
  return undefined;
}

/** The only message that a field of ours may be: see the writers in encoder.ts. */
function faultOfTime({ seconds, nanos }: Timestamp): string | undefined {
  return isInstant(seconds, nanos) ? undefined : `is no time between the years 1 and 9999: ${seconds} s ${nanos} ns`;
}
