/**
 * From an event's JSON, as the outbox keeps it, straight to its bytes.
 *
 * The library goes there by way of a message object (`fromJson`, then `toBinary`) and needs more than twice as long;
 * the relay does this for every event. The bytes are the same, which encoder.test.ts asks the library itself. What the
 * library lets pass is refused here: a field that is missing or empty, a number that JSON could not keep, half a
 * surrogate pair, a day that does not exist.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { EventNotEncodable } from "./faults.ts";
import { parseInstant } from "./time.ts";
import { begin, eventBytesMax, finish, room, writeInt64, writeNested, writeText, writeVarint } from "./wire.ts";

export type Encode = (json: unknown) => Uint8Array;

/** What a field's value is turned into bytes by. It writes the tag too: proto3 leaves out a zero, tag and all. */
type Write = (value: unknown, field: Field) => void;

interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly write: Write;
  readonly varintTag: number;
  readonly lengthTag: number;
  refuse(why: string): EventNotEncodable;
}

/** Compiles the encoder of one schema. Throws at once for a kind of field that it has no writer for. */
export function encoderFor(schema: DescMessage): Encode {
  const eventType = schema.name;
  const write = messageWriter(schema, { eventType, field: () => undefined });

  return (json) => {
    if (isObject(json) && "event_type" in json && json.event_type !== eventType) {
      throw new EventNotEncodable({ eventType, field: "event_type", why: `says ${shown(json.event_type)}` });
    }
    begin();
    write(json);
    return finish();
  };
}

/** Where in an event a message is, for whoever has to mend it. It is asked for only when something is wrong. */
interface Place {
  readonly eventType: string;
  /** "players[1]"; undefined for the event itself. */
  field(): string | undefined;
}

const within = (place: Place, name: string): string => {
  const outer = place.field();
  return outer === undefined ? name : `${outer}.${name}`;
};

/** Compiles a writer of all fields of a message. */
function messageWriter(schema: DescMessage, place: Place): (json: unknown) => void {
  const fields = schema.fields.map((field) => compileField(field, place)).sort((a, b) => a.varintTag - b.varintTag);

  return (json) => {
    if (!isObject(json)) {
      const why = `must be an object, not ${shown(json)}`;
      throw new EventNotEncodable({ eventType: place.eventType, field: place.field(), why });
    }
    let known = 0;
    for (const field of fields) {
      const value = json[field.name];
      if (value !== undefined) known++;
      // SQL's jsonb_build_object says "not there" with a null.
      if (value !== undefined && value !== null) field.write(value, field);
      else if (field.required) throw field.refuse("is missing");
    }
    if (known !== Object.keys(json).length) refuseUnknown(schema, place, json);
  };
}

/** Leaving out what the schema lacks would lose it for good, silently. */
function refuseUnknown(schema: DescMessage, place: Place, json: Record<string, unknown>): void {
  const names = new Set(schema.fields.map((field) => field.name));
  const field = Object.keys(json).find((key) => !names.has(key));
  if (field === undefined) return;
  throw new EventNotEncodable({
    eventType: place.eventType,
    field: within(place, field.slice(0, 80)),
    why: "is not in the schema that this build knows",
    perhapsNewer: true,
  });
}

function compileField(field: DescField, place: Place): Field {
  return {
    name: field.name,
    required: !field.proto.proto3Optional,
    write: writerFor(field, place),
    varintTag: field.number * 8,
    lengthTag: field.number * 8 + 2,
    refuse: (why) => new EventNotEncodable({ eventType: place.eventType, field: within(place, field.name), why }),
  };
}

function writerFor(field: DescField, place: Place): Write {
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) return writeString;
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.INT64) return writeInteger;
  if (field.fieldKind === "message" && field.message.typeName === TimestampSchema.typeName) return writeTime;
  if (field.fieldKind === "list" && field.listKind === "message") return listWriter(field, place);
  throw new TypeError(`${field} is of a kind that no event has had so far: give it a writer in encoder.ts`);
}

/** Messages in their order, at least one: proto3 cannot tell an empty list from one that was forgotten. */
function listWriter(list: DescField & { fieldKind: "list"; listKind: "message" }, place: Place): Write {
  // Encoding is synchronous, so which element is being written can be noted here, at no cost to those that fit.
  let at = 0;
  const write = messageWriter(list.message, {
    eventType: place.eventType,
    field: () => `${within(place, list.name)}[${at}]`,
  });

  return (value, field) => {
    if (!Array.isArray(value)) throw field.refuse(`must be an array, not ${shown(value)}`);
    if (value.length === 0) throw field.refuse("is empty");
    for (at = 0; at < value.length; at++) {
      reserve(0, field);
      writeVarint(field.lengthTag);
      writeNested(() => write(value[at]));
    }
  };
}

const writeString: Write = (value, field) => {
  if (typeof value !== "string") throw field.refuse(`must be a string, not ${shown(value)}`);
  if (value === "" && field.required) throw field.refuse("is empty");
  if (!value.isWellFormed()) throw field.refuse("holds half a surrogate pair, which has no bytes in UTF-8");
  const length = Buffer.byteLength(value);
  reserve(length, field);
  writeVarint(field.lengthTag);
  writeText(value, length);
};

const writeInteger: Write = (value, field) => {
  const whole = integer(value, field);
  // proto3: a zero that must be there is written by leaving it out.
  if (field.required && (whole === 0 || whole === 0n)) return;
  reserve(0, field);
  writeVarint(field.varintTag);
  if (typeof whole === "number" && whole >= 0) writeVarint(whole);
  else writeInt64(BigInt(whole));
};

const writeTime: Write = (value, field) => {
  const instant = typeof value === "string" ? parseInstant(value) : undefined;
  if (!instant) throw field.refuse(`must be an RFC 3339 time, not ${shown(value)}`);
  const { seconds, nanos } = instant;
  reserve(0, field);
  writeVarint(field.lengthTag);
  writeNested(() => {
    if (seconds !== 0) writeVarint(secondsTag);
    if (seconds > 0) writeVarint(seconds);
    if (seconds < 0) writeInt64(BigInt(seconds));
    if (nanos !== 0) writeVarint(nanosTag);
    if (nanos !== 0) writeVarint(nanos);
  });
};

const secondsTag = TimestampSchema.field.seconds.number * 8;
const nanosTag = TimestampSchema.field.nanos.number * 8;

/**
 * The longest tag, length and number around a text, and what a message around it moves on by: more is never written between
 * two calls.
 */
const framingBytesMax = 32;

function reserve(length: number, field: Field): void {
  if (!room(length + framingBytesMax)) throw field.refuse(`makes the event larger than ${eventBytesMax} bytes`);
}

const decimal = /^(?:0|-?[1-9]\d{0,18})$/;

/** A JSON number where it is exact, or a decimal in a string: SQL's `version` or `amount::text`. */
function integer(value: unknown, field: Field): number | bigint {
  if (Number.isSafeInteger(value)) return value as number;
  if (Number.isInteger(value)) throw field.refuse("is past what a JSON number keeps exactly: send it as a string");
  if (typeof value !== "string" || !decimal.test(value)) {
    throw field.refuse(`must be a whole number, not ${shown(value)}`);
  }
  const exact = BigInt(value);
  if (exact !== BigInt.asIntN(64, exact)) throw field.refuse(`must fit 64 bits, not ${value}`);
  return exact;
}

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** Enough of a value to find it by, never a whole payload in a log line. */
function shown(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
