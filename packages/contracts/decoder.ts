/**
 * Decodes events. The result is complete: bytes that are well formed but lack a required field (an empty message is well formed)
 * are rejected. Fields that this build does not know stay in the message, unread.
 */
import { type DescField, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { EventNotDecodable } from "./errors.ts";
import { isInRange } from "./timestamp.ts";

export type Decode = (bytes: Uint8Array) => Message;

export function createDecoder(schema: DescMessage): Decode {
  const eventType = schema.name;
  return (bytes) => {
    const message = readMessage(schema, bytes);
    const error = findError(schema, message);
    if (error) throw new EventNotDecodable({ eventType, ...error });
    const actual = (message as Fields).eventType;
    if (actual !== eventType) throw new EventNotDecodable({ eventType, field: "event_type", reason: `says ${actual}` });
    return message;
  };
}

type Fields = Message & Record<string, unknown>;

interface FieldError {
  /** The path: "players[1].user_id". */
  readonly field: string;
  readonly reason: string;
}

function readMessage(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : cause;
    const reason = `cannot be read from these ${bytes.length} bytes: ${detail}`;
    throw new EventNotDecodable({ eventType: schema.name, reason, cause });
  }
}

/** Returns the first field that is missing or invalid. */
function findError(schema: DescMessage, message: Message): FieldError | undefined {
  for (const field of schema.fields) {
    const value = (message as Fields)[field.localName];
    const reason = checkField(field, value);
    if (reason) return { field: field.name, reason };
    const inList = field.fieldKind === "list" ? findErrorInList(field, value as readonly Message[]) : undefined;
    if (inList) return inList;
  }
  return undefined;
}

function findErrorInList(
  field: DescField & { fieldKind: "list" },
  elements: readonly Message[],
): FieldError | undefined {
  const { message: schema } = field;
  if (schema === undefined) return undefined;
  for (const [index, element] of elements.entries()) {
    const error = findError(schema, element);
    if (error) return { field: `${field.name}[${index}].${error.field}`, reason: error.reason };
  }
  return undefined;
}

function checkField(field: DescField, value: unknown): string | undefined {
  const optional = field.proto.proto3Optional;
  if (value === undefined) return optional ? undefined : "is missing";
  if (value === "" && !optional) return "is missing";
  if (field.fieldKind === "list" && (value as readonly unknown[]).length === 0) return "is missing";
  // Timestamp is the only message type that a field has, apart from lists (see the writers in encoder.ts).
  if (field.fieldKind === "message") return checkTimestamp(value as Timestamp);
  return undefined;
}

function checkTimestamp(timestamp: Timestamp): string | undefined {
  if (isInRange(timestamp)) return undefined;
  return `is not a time between the years 1 and 9999: ${timestamp.seconds} s ${timestamp.nanos} ns`;
}
