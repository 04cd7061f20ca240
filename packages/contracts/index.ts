/**
 * The events that services publish: their schemas, their subjects, and how they are encoded.
 *
 * Guarantees:
 *  - an encoded event decodes to the same event, in this build and, while the contract check (`npm run check`) passes, in every
 *    other;
 *  - an event that does not fit its schema in every field is rejected before it is published, never truncated;
 *  - bytes decode to a complete event or throw EventNotDecodable.
 *
 * To add an event: a message in proto/, a line in `events`, `npm run generate`. ADR 10 says why each event is a message of
 * its own.
 */
import { type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createDecoder } from "./decoder.ts";
import { createEncoder } from "./encoder.ts";
import { EventNotDecodable, EventNotEncodable } from "./errors.ts";
import {
  AccountCreatedSchema,
  AccountDeletedSchema,
  AccountReinstatedSchema,
  AccountRolesChangedSchema,
  AccountSuspendedSchema,
} from "./gen/todoke/events/v1/account_pb.ts";
import {
  EntitlementExpiredSchema,
  EntitlementGrantedSchema,
  EntitlementRevokedSchema,
} from "./gen/todoke/events/v1/entitlement_pb.ts";
import { MatchMadeSchema, TicketExpiredSchema } from "./gen/todoke/events/v1/matchmaking_pb.ts";
import {
  OrderAcceptedSchema,
  OrderFailedSchema,
  OrderFilledSchema,
  OrderSucceededSchema,
  OrderUnresolvedSchema,
} from "./gen/todoke/events/v1/orders_pb.ts";
import {
  PointReservationDueSchema,
  PointReservationFailedSchema,
  PointsExpiredSchema,
  PointsGrantedSchema,
  PointsSpentSchema,
} from "./gen/todoke/events/v1/points_pb.ts";

export { eventBytesMax } from "./encoder.ts";
export { EventNotDecodable, EventNotEncodable } from "./errors.ts";
export { formatTimestamp } from "./timestamp.ts";

/** All events, each with its subject and its aggregate key: fields of the event, joined as written here. */
export const events = {
  EntitlementGranted: {
    schema: EntitlementGrantedSchema,
    subject: "entitlement.events",
    key: "user_id/stock_keeping_unit",
  },
  EntitlementRevoked: {
    schema: EntitlementRevokedSchema,
    subject: "entitlement.events",
    key: "user_id/stock_keeping_unit",
  },
  EntitlementExpired: {
    schema: EntitlementExpiredSchema,
    subject: "entitlement.events",
    key: "user_id/stock_keeping_unit",
  },
  AccountCreated: { schema: AccountCreatedSchema, subject: "account.events", key: "user_id" },
  AccountSuspended: { schema: AccountSuspendedSchema, subject: "account.events", key: "user_id" },
  AccountReinstated: { schema: AccountReinstatedSchema, subject: "account.events", key: "user_id" },
  AccountRolesChanged: { schema: AccountRolesChangedSchema, subject: "account.events", key: "user_id" },
  AccountDeleted: { schema: AccountDeletedSchema, subject: "account.events", key: "user_id" },
  MatchMade: { schema: MatchMadeSchema, subject: "matchmaking.events", key: "match_id" },
  TicketExpired: { schema: TicketExpiredSchema, subject: "matchmaking.events", key: "ticket_id" },
  PointsGranted: { schema: PointsGrantedSchema, subject: "points.events", key: "user_id" },
  PointsSpent: { schema: PointsSpentSchema, subject: "points.events", key: "user_id" },
  PointsExpired: { schema: PointsExpiredSchema, subject: "points.events", key: "user_id" },
  PointReservationFailed: { schema: PointReservationFailedSchema, subject: "points.events", key: "reservation_id" },
  // Internal to the points service: its scheduler sends its worker the reservations that are due.
  PointReservationDue: { schema: PointReservationDueSchema, subject: "points.reservations", key: "reservation_id" },
  OrderAccepted: { schema: OrderAcceptedSchema, subject: "orders.events", key: "client_order_id" },
  OrderSucceeded: { schema: OrderSucceededSchema, subject: "orders.events", key: "client_order_id" },
  OrderFailed: { schema: OrderFailedSchema, subject: "orders.events", key: "client_order_id" },
  OrderUnresolved: { schema: OrderUnresolvedSchema, subject: "orders.events", key: "client_order_id" },
  OrderFilled: { schema: OrderFilledSchema, subject: "orders.events", key: "client_order_id" },
} as const;

export type EventType = keyof typeof events;

/** The durable consumers and their subjects. Message brokers store events for them before they first run. */
export const consumers = {
  notification: ["entitlement.events", "account.events", "matchmaking.events", "points.events", "orders.events"],
  "gateway-bff": ["account.events"],
  matchmaking: ["account.events"],
  points: ["points.reservations"],
} as const satisfies Record<string, readonly (typeof events)[EventType]["subject"][]>;

/** The queues on RabbitMQ that have a name of their own, by consumer. */
export const rabbitmqQueues = { points: "reservationQueue" } as const satisfies Partial<
  Record<keyof typeof consumers, string>
>;

/** A decoded event. The generated types make every time optional; `decodeEvent` has checked that `occurredAt` is there. */
export type Event<Type extends EventType> = MessageShape<(typeof events)[Type]["schema"]> & {
  readonly occurredAt: Timestamp;
};

const codecs = new Map(
  Object.entries(events).map(([type, { schema }]) => [
    type,
    { encode: createEncoder(schema), decode: createDecoder(schema) },
  ]),
);

/** Whether this build knows the type. An unknown type is not an error: a newer build may have published it. */
export const isEventType = (name: string): name is EventType => codecs.has(name);

/** Encodes the JSON of an outbox row (snake_case, written by SQL). Throws EventNotEncodable. */
export function encodeEvent(eventType: string, json: unknown): Uint8Array {
  const codec = codecs.get(eventType);
  if (!codec) throw new EventNotEncodable(unknownType(eventType));
  return codec.encode(json);
}

/** Encodes an outbox row: the `encode` of a relay. */
export const encodeOutboxEvent = ({ eventType, payload }: { eventType: string; payload: string }): Uint8Array =>
  encodeEvent(eventType, JSON.parse(payload));

/** Throws EventNotDecodable. */
export function decodeEvent<Type extends EventType>(eventType: Type, bytes: Uint8Array): Event<Type> {
  const codec = codecs.get(eventType);
  if (!codec) throw new EventNotDecodable(unknownType(eventType));
  return codec.decode(bytes) as Event<Type>;
}

/** The event as JSON, with the names of an outbox row. 64-bit numbers are strings, because JSON readers round them. */
export const formatEvent = <Type extends EventType>(eventType: Type, event: Event<Type>): JsonValue =>
  toJson(events[eventType].schema, event, { useProtoFieldName: true });

/** The aggregate key of an event with these fields. */
export const aggregateKeyOf = (type: EventType, fields: Readonly<Record<string, unknown>>): string =>
  events[type].key.replace(/\w+/g, (name) => String(fields[name]));

const unknownType = (eventType: string) => ({
  eventType,
  reason: "is not a type of event that this build knows",
  maybeNewerSchema: true,
});
