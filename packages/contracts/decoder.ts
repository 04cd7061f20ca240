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
  const eventType = schema.name;
  return (bytes) => {
    const message = readMessage(schema, bytes);
    const fault = faultIn(schema, message);
    if (fault) throw new EventNotDecodable({ eventType, ...fault });
    const says = (message as Fields).eventType;
    if (says !== eventType) throw new EventNotDecodable({ eventType, field: "event_type", why: `says ${says}` });
    return message;
  };
}

type Fields = Message & Record<string, unknown>;

interface Fault {
  /** The way to it: "players[1].user_id". */
  readonly field: string;
  readonly why: string;
}

/** The first thing that a message lacks, or has wrong. */
function faultIn(schema: DescMessage, message: Message): Fault | undefined {
  for (const field of schema.fields) {
    const value = (message as Fields)[field.localName];
    const why = faultOf(field, value);
    if (why) return { field: field.name, why };
    const inside = field.fieldKind === "list" ? faultInList(field, value as readonly Message[]) : undefined;
    if (inside) return inside;
  }
  return undefined;
}

function faultInList(field: DescField & { fieldKind: "list" }, elements: readonly Message[]): Fault | undefined {
  const { message: schema } = field;
  if (schema === undefined) return undefined;
  for (const [at, element] of elements.entries()) {
    const fault = faultIn(schema, element);
    if (fault) return { field: `${field.name}[${at}].${fault.field}`, why: fault.why };
  }
  return undefined;
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
  if (field.fieldKind === "list" && (value as readonly unknown[]).length === 0) return "is missing";
  if (field.fieldKind === "message") return faultOfTime(value as Timestamp);
  return undefined;
}

/** The only message that a field of ours may be, but for lists: see the writers in encoder.ts. */
function faultOfTime({ seconds, nanos }: Timestamp): string | undefined {
  return isInstant(seconds, nanos) ? undefined : `is no time between the years 1 and 9999: ${seconds} s ${nanos} ns`;
}
