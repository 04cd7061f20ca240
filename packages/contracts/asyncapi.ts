/**
 * The events as a document of AsyncAPI 3, made from the descriptors and comments of the .proto files. Payloads on the bus are
 * Protocol Buffers; the schemas describe the same events as JSON (docs/adr/0131), with the number of each field beside it.
 */
import {
  type DescField,
  type DescMessage,
  type FileRegistry,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { aggregateKeyOf, consumers, type EventType, events, rabbitmqQueues } from "./index.ts";

type Subject = (typeof events)[EventType]["subject"];

const subjects = [...new Set(Object.values(events).map(({ subject }) => subject))];
const typesOn = (subject: Subject) =>
  (Object.keys(events) as EventType[]).filter((type) => events[type].subject === subject);

/** `registry` is built with source information, which has the comments. */
export function asyncApiDocument(registry: FileRegistry): JsonObject {
  return {
    asyncapi: "3.0.0",
    info: { title: "Todoke events", version: "1", description: introduction, license: { name: "Apache-2.0" } },
    defaultContentType: contentType,
    channels: Object.fromEntries(subjects.map((subject) => [nameOf(subject), channel(subject)])),
    operations: { ...Object.fromEntries(subjects.map(sendOperation)), ...Object.fromEntries(receiveOperations()) },
    components: {
      messages: Object.fromEntries((Object.keys(events) as EventType[]).map((type) => [type, message(type, registry)])),
      schemas: { EventHeaders: headers },
      messageTraits: { Envelope: { headers: ref("components/schemas/EventHeaders"), contentType } },
    },
  };
}

const contentType = "application/x-protobuf";

const introduction = `Services publish what has happened: an event exists if and only if its change was committed.

- **Delivery is at least once.** Consumers deduplicate by \`event_id\`, which is the id of the message.
- **Events of one aggregate key are published in the order of \`version\`.** Between keys there is no order. A retry can deliver an older event after a newer one, except on PostgreSQL: compare versions.
- **The payload is a Protocol Buffers message** of the package \`todoke.events.v1\`. The schemas here describe the same fields as JSON, as logs and operators' tools show them; \`x-protobuf-field\` is the number of a field. 64-bit integers are decimal strings in JSON.
- **Fields are only added,** always as optional ones. Ignore fields and types that you do not know.

| | PostgreSQL | NATS JetStream | RabbitMQ |
|---|---|---|---|
| subject | column \`subject\` | subject, in the stream of its service: \`ENTITLEMENT\` | routing key of a topic exchange |
| message id | \`event_id\` | \`Nats-Msg-Id\` | \`message-id\` |
| headers | JSON | headers | headers |`;

const ref = (path: string) => ({ $ref: `#/${path}` });

/** `points.reservations` is the channel PointsReservations. */
const nameOf = (subject: string) =>
  subject
    .split(/[.-]/)
    .map((part) => part[0]?.toUpperCase() + part.slice(1))
    .join("");

function channel(subject: Subject): JsonObject {
  const types = typesOn(subject);
  const keys = [...new Set(types.map((type) => events[type].key))];
  const isInternal = subject === "points.reservations";
  return {
    address: subject,
    title: subject,
    description:
      `${isInternal ? "Internal to the points service." : `What happened in the ${producerOf(subject)} service.`} ` +
      `The aggregate key is ${keys.map((key) => `\`${key}\``).join(" or ")}.`,
    messages: Object.fromEntries(types.map((type) => [type, ref(`components/messages/${type}`)])),
  };
}

const producerOf = (subject: Subject): string => subject.split(".")[0] ?? "";

const messagesOf = (subject: Subject) =>
  typesOn(subject).map((type) => ref(`channels/${nameOf(subject)}/messages/${type}`));

const sendOperation = (subject: Subject) =>
  [
    `${producerOf(subject)}.publish${nameOf(subject)}`,
    {
      action: "send",
      channel: ref(`channels/${nameOf(subject)}`),
      title: `${producerOf(subject)} publishes ${subject}`,
      description: "Its relay publishes what its outbox has, at least once and in the order of each aggregate key.",
      messages: messagesOf(subject),
    },
  ] as const;

function receiveOperations() {
  return Object.entries(consumers).flatMap(([consumer, consumed]) =>
    consumed.map((subject) => {
      const queue = (rabbitmqQueues as Readonly<Record<string, string>>)[consumer];
      return [
        `${consumer}.receive${nameOf(subject)}`,
        {
          action: "receive",
          channel: ref(`channels/${nameOf(subject)}`),
          title: `${consumer} receives ${subject}`,
          description:
            `The durable consumer \`${consumer}\`${queue ? ` (on RabbitMQ the queue \`${queue}\`)` : ""}. Its inbox applies each event ` +
            "once, and dead-letters an event that cannot succeed.",
          messages: messagesOf(subject),
        },
      ] as const;
    }),
  );
}

const text = (description: string, more: JsonObject = {}): JsonObject => ({ type: "string", description, ...more });

const headers: JsonObject = {
  type: "object",
  required: ["event_type", "aggregate_key", "occurred_at"],
  properties: {
    event_type: text("The name of the message.", { examples: ["EntitlementGranted"] }),
    aggregate_key: text("The entity whose events keep their order.", { examples: ["u_123/gold-pass"] }),
    occurred_at: text("When the change was committed.", { format: "date-time" }),
    traceparent: text("The W3C trace context of the request that caused the event."),
    trace_id: text("Its trace id."),
  },
};

function message(type: EventType, registry: FileRegistry): JsonObject {
  const found = registry.getMessage(events[type].schema.typeName);
  if (!found) throw new Error(`${type} is in index.ts, but not in proto/`);
  return {
    name: type,
    title: type,
    summary: commentOf(found),
    traits: [ref("components/messageTraits/Envelope")],
    correlationId: { description: "The trace of the request.", location: "$message.header#/traceparent" },
    payload: messageSchema(found, type),
    examples: [{ name: type, headers: exampleHeaders(type, found), payload: exampleOf(found, type) }],
    "x-protobuf-message": found.typeName,
    "x-aggregate-key": events[type].key,
    tags: [{ name: producerOf(events[type].subject) }],
  };
}

function messageSchema(message: DescMessage, type?: string): JsonObject {
  return {
    type: "object",
    description: commentOf(message),
    required: message.fields.filter(isRequired).map((field) => field.name),
    properties: Object.fromEntries(message.fields.map((field) => [field.name, fieldSchema(field, type)])),
  };
}

const isRequired = (field: DescField): boolean => !field.proto.proto3Optional;

function fieldSchema(field: DescField, type: string | undefined): JsonObject {
  const description = commentOf(field) || headComments[field.name];
  return { ...typeSchema(field, type), ...(description && { description }), "x-protobuf-field": field.number };
}

/** The comments of EventHead, which every event repeats without them. */
const headComments: Readonly<Record<string, string>> = {
  event_id: "UUID v7, the same in every retry. Consumers deduplicate by it.",
  event_type: "The name of the message.",
  occurred_at: "When the change was committed.",
  version: "The version of the aggregate after the change. Later events of an aggregate have higher versions.",
  trace_id: "The W3C trace id of the request that caused the event, if there was one.",
};

function typeSchema(field: DescField, type: string | undefined): JsonObject {
  if (field.name === "event_type" && type) return { type: "string", const: type };
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING)
    return { type: "string", ...(isRequired(field) && { minLength: 1 }) };
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.INT64)
    return { type: "string", format: "int64", pattern: "^-?[0-9]{1,19}$" };
  if (field.fieldKind === "message" && field.message.typeName === TimestampSchema.typeName)
    return { type: "string", format: "date-time" };
  if (field.fieldKind === "list" && field.listKind === "message")
    return { type: "array", minItems: 1, items: messageSchema(field.message) };
  throw new TypeError(`${field} has a type that events do not use yet: add it to asyncapi.ts`);
}

const exampleId = "0190f3c2-7a3b-7c1e-9f00-8a6b2c4d5e6f";
const exampleTime = "2026-01-08T07:10:00.123456Z";

/** By the name of the field. Other fields are ids: `match_id` is "match_1". */
const exampleValues: Readonly<Record<string, string>> = {
  event_id: exampleId,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  user_id: "01a1df39-ea33-7000-ba4d-967d2e0fabc4",
  stock_keeping_unit: "gold-pass",
  source: "purchase",
  source_id: "p_1",
  status: "ACTIVE",
  roles: "USER",
  reason: "campaign",
  reason_code: "REJECTED",
  mode: "ranked",
  region: "tokyo",
  instrument: "BTC-JPY",
  side: "buy",
  qty: "0.5",
  price: "9800000",
  fill_qty: "0.5",
  fill_price: "9790000",
  filled_qty: "0.5",
  average_price: "9790000",
  caller: "shop",
  point_amount: "250",
  balance: "1250",
  team: "1",
  party_size: "1",
};

function exampleOf(message: DescMessage, type?: string): JsonObject {
  return Object.fromEntries(message.fields.map((field) => [field.name, exampleValue(field, type)]));
}

function exampleValue(field: DescField, type: string | undefined): JsonValue {
  if (field.name === "event_type" && type) return type;
  if (field.fieldKind === "list" && field.listKind === "message") {
    return ["1", "2"].map((n) => ({ ...exampleOf(field.message), user_id: `u_${n}`, ticket_id: `t_${n}`, team: n }));
  }
  if (field.fieldKind === "message") return exampleTime;
  const isInteger = field.fieldKind === "scalar" && field.scalar === ScalarType.INT64;
  return exampleValues[field.name] ?? (isInteger ? "3" : field.name.replace(/_id$/, "_1"));
}

function exampleHeaders(type: EventType, message: DescMessage): JsonObject {
  const example = exampleOf(message, type);
  return {
    event_type: type,
    aggregate_key: aggregateKeyOf(type, example),
    occurred_at: exampleTime,
    traceparent: `00-${exampleValues.trace_id}-00f067aa0ba902b7-01`,
    trace_id: exampleValues.trace_id ?? "",
  };
}

/** The comment above a message or a field in its .proto file, in one line. */
function commentOf(desc: DescMessage | DescField): string {
  const [message, file] = desc.kind === "message" ? [desc, desc.file] : [desc.parent, desc.parent.file];
  const path = [4, file.messages.indexOf(message), ...(desc.kind === "field" ? [2, message.fields.indexOf(desc)] : [])];
  const location = file.proto.sourceCodeInfo?.location.find((each) => each.path.join() === path.join());
  return (location?.leadingComments ?? "").trim().replace(/\s*\n\s*/g, " ");
}
