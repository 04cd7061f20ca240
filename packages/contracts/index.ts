/**
 * The events that services tell each other: their schemas, where they are published, and how they become bytes.
 *
 * Promises:
 *  - an event that was encoded decodes to the same event, in this build and, as long as the contract check is green
 *    (`npm run check`), in every other;
 *  - what does not fit its schema in every field is refused before it is published, never cut to fit;
 *  - any bytes either decode to a whole event or throw EventNotDecodable.
 *
 * A new event is a message in proto/, a line in `events`, and `npm run generate`. Why each event is a message of its
 * own: docs/adr (events as Protocol Buffers).
 */
import type { MessageShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { decoderFor } from "./decoder.ts";
import { encoderFor } from "./encoder.ts";
import { EventNotDecodable, EventNotEncodable } from "./faults.ts";
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

export { EventNotDecodable, EventNotEncodable } from "./faults.ts";
export { eventBytesMax } from "./wire.ts";

/** Every event there is, and the subject it is published on. */
export const events = {
  EntitlementGranted: { schema: EntitlementGrantedSchema, subject: "entitlement.events" },
  EntitlementRevoked: { schema: EntitlementRevokedSchema, subject: "entitlement.events" },
  EntitlementExpired: { schema: EntitlementExpiredSchema, subject: "entitlement.events" },
  AccountCreated: { schema: AccountCreatedSchema, subject: "account.events" },
  AccountSuspended: { schema: AccountSuspendedSchema, subject: "account.events" },
  AccountReinstated: { schema: AccountReinstatedSchema, subject: "account.events" },
  AccountRolesChanged: { schema: AccountRolesChangedSchema, subject: "account.events" },
  AccountDeleted: { schema: AccountDeletedSchema, subject: "account.events" },
  MatchMade: { schema: MatchMadeSchema, subject: "matchmaking.events" },
  TicketExpired: { schema: TicketExpiredSchema, subject: "matchmaking.events" },
  PointsGranted: { schema: PointsGrantedSchema, subject: "points.events" },
  PointsSpent: { schema: PointsSpentSchema, subject: "points.events" },
  PointsExpired: { schema: PointsExpiredSchema, subject: "points.events" },
  PointReservationFailed: { schema: PointReservationFailedSchema, subject: "points.events" },
  // Not for others: the points service's own worker is told what is due.
  PointReservationDue: { schema: PointReservationDueSchema, subject: "points.reservations" },
  OrderAccepted: { schema: OrderAcceptedSchema, subject: "orders.events" },
  OrderSucceeded: { schema: OrderSucceededSchema, subject: "orders.events" },
  OrderFailed: { schema: OrderFailedSchema, subject: "orders.events" },
  OrderUnresolved: { schema: OrderUnresolvedSchema, subject: "orders.events" },
} as const;

export type EventType = keyof typeof events;

/** Who consumes what: durable consumer names and their subjects. A broker keeps events for these before they first run. */
export const consumers = {
  notification: ["entitlement.events", "account.events", "matchmaking.events", "points.events", "orders.events"],
  "gateway-bff": ["account.events"],
  matchmaking: ["account.events"],
  points: ["points.reservations"],
} as const satisfies Record<string, readonly (typeof events)[EventType]["subject"][]>;

/** An event as it is handed to a handler. Generated types call every time optional; `decodeEvent` has looked. */
export type Event<Type extends EventType> = MessageShape<(typeof events)[Type]["schema"]> & {
  readonly occurredAt: Timestamp;
};

const codecs = new Map(
  Object.entries(events).map(([type, { schema }]) => [
    type,
    { encode: encoderFor(schema), decode: decoderFor(schema) },
  ]),
);

/** Whether this build knows the type. One that it does not know is no broken event: a newer build may be under way. */
export const isEventType = (name: string): name is EventType => codecs.has(name);

/** The bytes of an event, from the JSON that its outbox row keeps (snake_case, made by SQL). Else EventNotEncodable. */
export function encodeEvent(eventType: string, json: unknown): Uint8Array {
  const codec = codecs.get(eventType);
  if (!codec) throw new EventNotEncodable(unknownType(eventType));
  return codec.encode(json);
}

/** The same from an outbox row as a relay holds it: what a relay takes as its `encode`. */
export const encodeOutboxEvent = ({ eventType, payload }: { eventType: string; payload: string }): Uint8Array =>
  encodeEvent(eventType, JSON.parse(payload));

/** The event in these bytes. Else EventNotDecodable. */
export function decodeEvent<Type extends EventType>(eventType: Type, bytes: Uint8Array): Event<Type> {
  const codec = codecs.get(eventType);
  if (!codec) throw new EventNotDecodable(unknownType(eventType));
  return codec.decode(bytes) as Event<Type>;
}

const unknownType = (eventType: string) => ({
  eventType,
  why: "is not a type of event that this build knows",
  perhapsNewer: true,
});
