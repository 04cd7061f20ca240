/**
 * Encodes the JSON of an outbox event as Protocol Buffers.
 *
 * The fields are checked here and written by the library's BinaryWriter. The library's own way from JSON to bytes (`fromJson`,
 * then `toBinary`) costs three times as much and accepts what must be rejected: missing and empty fields, numbers that JSON has
 * rounded, lone surrogates, days that do not exist (docs/adr/0048-own-checks-library-bytes.md).
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { EventNotEncodable } from "./errors.ts";
import { parseTimestamp } from "./timestamp.ts";

/** Events carry facts, not documents. This is far below the message limit of every broker (NATS: 1 MB). */
export const eventBytesMax = 65_536;

export type Encode = (json: unknown) => Uint8Array;

// One writer, and so one buffer, serves all events: encoding is synchronous and `finish` copies the bytes.
let writer = new BinaryWriter();

/** Compiles the encoder of a schema. Throws if the schema has a kind of field that no writer handles. */
export function createEncoder(schema: DescMessage): Encode {
  const eventType = schema.name;
  const write = compileMessage(schema, { eventType, field: () => undefined });

  return (json) => {
    if (isObject(json) && "event_type" in json && json.event_type !== eventType) {
      throw new EventNotEncodable({ eventType, field: "event_type", reason: `says ${describeValue(json.event_type)}` });
    }
    try {
      write(json);
    } catch (error) {
      writer = new BinaryWriter(); // The old one has half an event in it.
      throw error;
    }
    const bytes = writer.finish();
    if (bytes.length <= eventBytesMax) return bytes;
    throw new EventNotEncodable({ eventType, reason: `is larger than ${eventBytesMax} bytes` });
  };
}

/** The position of a message in its event, for error messages. */
interface FieldPath {
  readonly eventType: string;
  /** "players[1]"; undefined for the event itself. A function, because it is needed for errors only. */
  field(): string | undefined;
}

function joinPath(path: FieldPath, name: string): string {
  const outer = path.field();
  return outer === undefined ? name : `${outer}.${name}`;
}

interface Field {
  readonly name: string;
  readonly number: number;
  readonly required: boolean;
  /** Writes the tag too, because proto3 omits a zero together with its tag. */
  readonly write: WriteField;
  error(reason: string): EventNotEncodable;
}

type WriteField = (value: unknown, field: Field) => void;

function compileMessage(schema: DescMessage, path: FieldPath): (json: unknown) => void {
  const fields = schema.fields.map((field) => compileField(field, path)).sort((a, b) => a.number - b.number);

  return (json) => {
    if (!isObject(json)) {
      const reason = `must be an object, not ${describeValue(json)}`;
      throw new EventNotEncodable({ eventType: path.eventType, field: path.field(), reason });
    }
    let known = 0;
    for (const field of fields) {
      const value = json[field.name];
      if (value !== undefined) known++;
      // jsonb_build_object writes an absent value as null.
      if (value !== undefined && value !== null) field.write(value, field);
      else if (field.required) throw field.error("is missing");
    }
    if (known !== Object.keys(json).length) rejectUnknownField(schema, path, json);
  };
}

/** Dropping a field that the schema lacks would lose data silently. */
function rejectUnknownField(schema: DescMessage, path: FieldPath, json: Record<string, unknown>): void {
  const names = new Set(schema.fields.map((field) => field.name));
  const unknown = Object.keys(json).find((key) => !names.has(key));
  if (unknown === undefined) return;
  throw new EventNotEncodable({
    eventType: path.eventType,
    field: joinPath(path, unknown.slice(0, 80)),
    reason: "is not in the schema that this build knows",
    maybeNewerSchema: true,
  });
}

function compileField(field: DescField, path: FieldPath): Field {
  const { name, number } = field;
  return {
    name,
    number,
    required: !field.proto.proto3Optional,
    write: chooseWriter(field, path),
    error: (reason) => new EventNotEncodable({ eventType: path.eventType, field: joinPath(path, name), reason }),
  };
}

function chooseWriter(field: DescField, path: FieldPath): WriteField {
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) return writeString;
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.INT64) return writeInteger;
  if (field.fieldKind === "message" && field.message.typeName === TimestampSchema.typeName) return writeTimestamp;
  if (field.fieldKind === "list" && field.listKind === "message") return compileList(field, path);
  throw new TypeError(`${field} has a type that events do not use yet: add a writer to encoder.ts`);
}

/** At least one message: proto3 cannot tell an empty list from a missing one. */
function compileList(list: DescField & { fieldKind: "list"; listKind: "message" }, path: FieldPath): WriteField {
  let index = 0;
  const write = compileMessage(list.message, {
    eventType: path.eventType,
    field: () => `${joinPath(path, list.name)}[${index}]`,
  });

  return (value, field) => {
    if (!Array.isArray(value)) throw field.error(`must be an array, not ${describeValue(value)}`);
    if (value.length === 0) throw field.error("is empty");
    for (index = 0; index < value.length; index++) {
      writer.tag(field.number, WireType.LengthDelimited).fork();
      write(value[index]);
      writer.join();
    }
  };
}

const writeString: WriteField = (value, field) => {
  if (typeof value !== "string") throw field.error(`must be a string, not ${describeValue(value)}`);
  if (value === "" && field.required) throw field.error("is empty");
  if (value.length >= eventBytesMax) throw field.error(`makes the event larger than ${eventBytesMax} bytes`);
  if (!value.isWellFormed()) throw field.error("contains a lone surrogate, which UTF-8 cannot represent");
  writer.tag(field.number, WireType.LengthDelimited).string(value);
};

const writeInteger: WriteField = (value, field) => {
  const integer = parseInteger(value, field);
  // proto3 omits a zero, unless the field is optional.
  if (field.required && (integer === 0 || integer === 0n)) return;
  writer.tag(field.number, WireType.Varint).int64(integer);
};

const writeTimestamp: WriteField = (value, field) => {
  const timestamp = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (!timestamp) throw field.error(`must be an RFC 3339 time, not ${describeValue(value)}`);
  const { seconds, nanos } = timestamp;
  writer.tag(field.number, WireType.LengthDelimited).fork();
  if (seconds !== 0) writer.tag(TimestampSchema.field.seconds.number, WireType.Varint).int64(seconds);
  if (nanos !== 0) writer.tag(TimestampSchema.field.nanos.number, WireType.Varint).int32(nanos);
  writer.join();
};

const decimal = /^(?:0|-?[1-9]\d{0,18})$/;

/** An exact JSON number, or a decimal in a string, as SQL's `amount::text` writes it. */
function parseInteger(value: unknown, field: Field): number | bigint {
  if (Number.isSafeInteger(value)) return value as number;
  if (Number.isInteger(value)) throw field.error("is too large for an exact JSON number: send it as a string");
  if (typeof value !== "string" || !decimal.test(value)) {
    throw field.error(`must be a whole number, not ${describeValue(value)}`);
  }
  const integer = BigInt(value);
  if (integer !== BigInt.asIntN(64, integer)) throw field.error(`must fit 64 bits, not ${value}`);
  return integer;
}

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** Shortens a value for an error message, so that no whole payload gets into a log line. */
function describeValue(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
