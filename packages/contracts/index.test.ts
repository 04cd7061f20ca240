import { readFileSync } from "node:fs";
import {
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EventHeadSchema } from "./gen/todoke/events/v1/head_pb.ts";
import {
  decodeEvent,
  EventNotDecodable,
  EventNotEncodable,
  encodeEvent,
  encodeOutboxEvent,
  eventBytesMax,
  events,
  formatTimestamp,
  isEventType,
} from "./index.ts";

/** As PostgreSQL's jsonb_build_object writes it. */
const granted = {
  event_id: "0199f0c4-7c1a-7cc3-98c4-dc0c0c07398f",
  event_type: "EntitlementGranted",
  occurred_at: "2026-01-08T07:10:00.123456+00:00",
  version: 12,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  user_id: "u_123",
  stock_keeping_unit: "item1",
  source: "purchase",
  source_id: "p_456",
};

// Values that an outbox row may have, edge cases first.
const text = fc.string({ unit: "binary", minLength: 1, maxLength: 60 }).filter((value) => value.isWellFormed());
const int64 = fc.oneof(
  fc.constantFrom<number | string>(0, 127, 128, 2 ** 31, 2 ** 32, 2 ** 53 - 1, -1, "-9223372036854775808"),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
);
const zone = fc.constantFrom("Z", "+00:00", "+09:00", "-03:30");
const time = fc
  .tuple(
    fc.date({ min: new Date("0001-01-02T00:00:00Z"), max: new Date("9999-12-30T00:00:00Z"), noInvalidDate: true }),
    fc.constantFrom("", ".5", ".123456", ".999999999", ".000000001"),
    zone,
  )
  .map(([date, fraction, zone]) => date.toISOString().slice(0, 19) + fraction + zone);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });

const own = { user_id: text, stock_keeping_unit: text, source: text, source_id: text };
const standing = { user_id: text, status: text, roles: optional(text), suspended_until: optional(time) };
const player = fc.record({ user_id: text, ticket_id: text, team: int64, party_size: int64 });
const head = { event_id: fc.uuid(), occurred_at: time, version: int64, trace_id: optional(text) };
const points = { user_id: text, transaction_id: text, point_amount: int64, balance: int64 };
const reservation = { user_id: text, reservation_id: text, point_amount: int64, execute_at: time };
const order = {
  user_id: optional(text),
  caller: optional(text),
  order_id: text,
  client_order_id: text,
  instrument: text,
  side: text,
  qty: text,
  price: optional(text),
};
const event = fc.oneof(
  fc.record({
    event_type: fc.constantFrom("EntitlementGranted" as const, "EntitlementRevoked" as const),
    ...head,
    ...own,
  }),
  fc.record({ event_type: fc.constant("EntitlementExpired" as const), ...head, ...own, expires_at: time }),
  fc.record({
    event_type: fc.constantFrom("AccountCreated" as const, "AccountRolesChanged" as const, "AccountDeleted" as const),
    ...head,
    ...standing,
  }),
  fc.record({
    event_type: fc.constantFrom("AccountSuspended" as const, "AccountReinstated" as const),
    ...head,
    ...standing,
    reason: text,
  }),
  fc.record({
    event_type: fc.constant("MatchMade" as const),
    ...head,
    match_id: text,
    mode: text,
    players: fc.array(player, { minLength: 1, maxLength: 20 }),
    region: optional(text),
  }),
  fc.record({
    event_type: fc.constant("TicketExpired" as const),
    ...head,
    user_id: text,
    ticket_id: text,
    mode: text,
    reason: text,
  }),
  fc.record({
    event_type: fc.constantFrom("PointsGranted" as const, "PointsSpent" as const),
    ...head,
    ...points,
    reason: optional(text),
    source: optional(text),
    source_id: optional(text),
  }),
  fc.record({ event_type: fc.constant("PointsGranted" as const), ...head, ...points, expires_at: optional(time) }),
  fc.record({ event_type: fc.constant("PointsExpired" as const), ...head, ...points }),
  fc.record({ event_type: fc.constant("PointReservationDue" as const), ...head, ...reservation }),
  fc.record({ event_type: fc.constant("PointReservationFailed" as const), ...head, ...reservation, reason: text }),
  fc.record({ event_type: fc.constant("OrderAccepted" as const), ...head, ...order }),
  fc.record({ event_type: fc.constant("OrderSucceeded" as const), ...head, ...order, broker_order_id: optional(text) }),
  fc.record({
    event_type: fc.constantFrom("OrderFailed" as const, "OrderUnresolved" as const),
    ...head,
    ...order,
    reason_code: text,
    reason: optional(text),
  }),
);

test("an event that follows a rejected one is encoded correctly", () => {
  const expected = encodeEvent("MatchMade", made);
  expect(() => encodeEvent("MatchMade", { ...made, players: withSecond({ team: 1.5 }) })).toThrow(EventNotEncodable);
  expect(encodeEvent("MatchMade", made)).toEqual(expected);
});

test("a timestamp is formatted in UTC with its microseconds", () => {
  for (const time of ["2026-01-08T07:10:00.123456Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z"]) {
    const { occurredAt } = decodeEvent(
      "EntitlementGranted",
      encodeEvent("EntitlementGranted", { ...granted, occurred_at: time }),
    );
    expect(formatTimestamp(occurredAt)).toBe(time);
  }
});

test("an encoded event decodes to the same event and has the bytes of the Protocol Buffers library", () => {
  fc.assert(
    fc.property(event, (json) => {
      const { schema } = events[json.event_type];
      const expected = fromJson(schema as DescMessage, json as JsonValue);
      const bytes = encodeEvent(json.event_type, json);
      expect(Buffer.from(bytes).equals(toBinary(schema as DescMessage, expected))).toBe(true);
      expect(decodeEvent(json.event_type, bytes)).toEqual(expected);
    }),
    { numRuns: 2_000 },
  );
});

test("any bytes decode to a complete event or throw EventNotDecodable", () => {
  const bytes = encodeEvent("EntitlementGranted", granted);
  const flipped = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)).map(([at, value]) => bytes.with(at, value));
  const cut = fc.nat(bytes.length).map((length) => bytes.subarray(0, length));
  let whole = 0;
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), flipped, cut), (any) => {
      try {
        const { $typeName, $unknown, ...fields } = decodeEvent("EntitlementGranted", any);
        whole++;
        for (const [name, value] of Object.entries(fields)) expect(value, name).not.toBe("");
        const json = toJson(events.EntitlementGranted.schema, { $typeName, ...fields }, { useProtoFieldName: true });
        // A complete event can be encoded again.
        decodeEvent("EntitlementGranted", encodeEvent("EntitlementGranted", { version: 0, ...(json as object) }));
      } catch (error) {
        expect(error).toBeInstanceOf(EventNotDecodable);
      }
    }),
    { numRuns: 5_000 },
  );
  expect(whole).toBeGreaterThan(100);
});

test("JSON that is not an event throws EventNotEncodable", () => {
  const invalid = fc
    .tuple(fc.constantFrom(...Object.keys(granted)), fc.anything())
    .map(([field, value]) => ({ ...granted, [field]: value }));
  fc.assert(
    fc.property(fc.oneof(fc.anything(), invalid), (any) => {
      try {
        decodeEvent("EntitlementGranted", encodeEvent("EntitlementGranted", any));
      } catch (error) {
        expect(error).toBeInstanceOf(EventNotEncodable);
      }
    }),
    { numRuns: 5_000 },
  );
});

test.each<[string, object, string]>([
  ["a missing field", { user_id: undefined }, "user_id is missing"],
  ["a null where there must be a value", { source: null }, "source is missing"],
  ["an empty id", { user_id: "" }, "user_id is empty"],
  ["the name of another type", { event_type: "Praised" }, `event_type says "Praised"`],
  ["a number for a string", { user_id: 7 }, "user_id must be a string, not 7"],
  ["a lone surrogate", { user_id: "u\ud800" }, "user_id contains a lone surrogate"],
  ["a fraction", { version: 1.5 }, "version must be a whole number, not 1.5"],
  ["an empty string for a number", { version: "" }, `version must be a whole number, not ""`],
  ["a number that JSON has rounded", { version: 2 ** 53 }, "version is too large for an exact JSON number"],
  ["a number past 64 bits", { version: "9223372036854775808" }, "version must fit 64 bits"],
  ["a day that does not exist", { occurred_at: "2026-02-29T00:00:00Z" }, "occurred_at must be an RFC 3339 time"],
  ["a time without a zone", { occurred_at: "2026-02-28T00:00:00" }, "occurred_at must be an RFC 3339 time"],
  ["PostgreSQL's infinity", { occurred_at: "infinity" }, `occurred_at must be an RFC 3339 time, not "infinity"`],
  ["an oversize event", { source_id: "x".repeat(eventBytesMax) }, "source_id makes the event larger than 65536 bytes"],
])("%s is rejected with the field and the reason", (_, change, message) => {
  const encode = () => encodeEvent("EntitlementGranted", { ...granted, ...change });
  expect(encode).toThrow(`EntitlementGranted.${message}`);
  expect(encode).toThrow(expect.objectContaining({ name: "EventNotEncodable", maybeNewerSchema: false }));
});

/** Two players, as SQL's jsonb_agg writes them. */
const made = {
  event_id: "0199f0c4-7c1a-7cc3-98c4-dc0c0c07398f",
  event_type: "MatchMade",
  occurred_at: "2026-01-08T07:10:00.123456+00:00",
  version: 1,
  match_id: "m_1",
  mode: "ranked",
  players: [
    { user_id: "u_1", ticket_id: "t_1", team: 1, party_size: 1 },
    { user_id: "u_2", ticket_id: "t_2", team: 2, party_size: 3 },
  ],
};
const withSecond = (change: object) => [made.players[0], { ...made.players[1], ...change }];

test.each<[string, unknown, string]>([
  ["no list", undefined, "players is missing"],
  ["an empty list", [], "players is empty"],
  ["an object for a list", {}, "players must be an array, not an object"],
  ["a string for an element", [made.players[0], "u_2"], `players[1] must be an object, not "u_2"`],
  ["a null for an element", [null], "players[0] must be an object, not null"],
  ["an element without its user", withSecond({ user_id: undefined }), "players[1].user_id is missing"],
  ["an element with an empty ticket", withSecond({ ticket_id: "" }), "players[1].ticket_id is empty"],
  ["an element with a fraction", withSecond({ team: 1.5 }), "players[1].team must be a whole number, not 1.5"],
])("%s is rejected with the path of the field", (_, players, message) => {
  const encode = () => encodeEvent("MatchMade", { ...made, players });
  expect(encode).toThrow(`MatchMade.${message}`);
  expect(encode).toThrow(expect.objectContaining({ name: "EventNotEncodable", maybeNewerSchema: false }));
});

test("an unknown field of an element is rejected with its path, as maybe newer", () => {
  const encode = () => encodeEvent("MatchMade", { ...made, players: withSecond({ clan: "c_1" }) });
  expect(encode).toThrow("MatchMade.players[1].clan is not in the schema");
  expect(encode).toThrow(expect.objectContaining({ maybeNewerSchema: true }));
});

test("elements of any length have the bytes of the library, up to the maximum size of an event", () => {
  const { schema } = events.MatchMade;
  for (const length of [100, 117, 118, 119, 200, 16_360, 16_370, 16_380, 40_000]) {
    const players = withSecond({ user_id: "x".repeat(length) });
    const expected = toBinary(schema, fromJson(schema, { ...made, players } as JsonValue));
    expect(Buffer.from(encodeEvent("MatchMade", { ...made, players })).equals(expected), `${length}`).toBe(true);
  }
  const crowd = Array.from({ length: 2_000 }, (_, n) => ({ ...made.players[0], user_id: `u_${n}`.padEnd(40, "x") }));
  expect(() => encodeEvent("MatchMade", { ...made, players: crowd })).toThrow(/^MatchMade is larger than 65536 bytes$/);
});

test("an element without a required field is not decoded, and the error has its path", () => {
  const { schema } = events.MatchMade;
  const event = decodeEvent("MatchMade", encodeEvent("MatchMade", made));
  expect(event.players.map(({ userId, team, partySize }) => ({ userId, team, partySize }))).toEqual([
    { userId: "u_1", team: 1n, partySize: 1n },
    { userId: "u_2", team: 2n, partySize: 3n },
  ]);
  const decode = (players: typeof event.players) => () =>
    decodeEvent("MatchMade", toBinary(schema, { ...event, players }));
  expect(decode([])).toThrow("MatchMade.players is missing");
  const [first, second] = event.players as [(typeof event.players)[0], (typeof event.players)[0]];
  expect(decode([first, { ...second, userId: "" }])).toThrow("MatchMade.players[1].user_id is missing");
});

test("an outbox row is encoded as its event", () => {
  const row = { eventType: "MatchMade", payload: JSON.stringify(made) };
  expect(encodeOutboxEvent(row)).toEqual(encodeEvent("MatchMade", made));
  expect(() => encodeOutboxEvent({ ...row, eventType: "Praised" })).toThrow(
    expect.objectContaining({ maybeNewerSchema: true }),
  );
});

test("an unknown type or field is marked as maybe newer", () => {
  const newer = expect.objectContaining({ maybeNewerSchema: true });
  expect(() => encodeEvent("Praised", {})).toThrow(newer);
  expect(() => encodeEvent("EntitlementGranted", { ...granted, gift_note: "for you" })).toThrow(newer);
  expect(() => decodeEvent("Praised" as "EntitlementGranted", new Uint8Array())).toThrow(newer);
  expect(isEventType("Praised")).toBe(false);
  expect(isEventType("toString")).toBe(false);
});

test("an older reader keeps the unknown fields of a newer event", () => {
  const unknown = Buffer.from("\xea\x07\x03new", "latin1"); // field 125
  const bytes = Buffer.concat([encodeEvent("EntitlementGranted", granted), unknown]);
  const event = decodeEvent("EntitlementGranted", bytes);
  expect(event.userId).toBe("u_123");
  expect(Buffer.from(toBinary(events.EntitlementGranted.schema, event)).equals(bytes)).toBe(true);
});

test("an empty message and one of another type are not decoded", () => {
  expect(() => decodeEvent("EntitlementGranted", new Uint8Array())).toThrow("EntitlementGranted.event_id is missing");
  const revoked = encodeEvent("EntitlementRevoked", { ...granted, event_type: "EntitlementRevoked" });
  expect(() => decodeEvent("EntitlementGranted", revoked)).toThrow("event_type says EntitlementRevoked");
});

test("a time outside the years 1 to 9999 is not decoded", () => {
  const { schema } = events.EntitlementGranted;
  const event = decodeEvent("EntitlementGranted", encodeEvent("EntitlementGranted", granted));
  for (const time of [
    { seconds: 10n ** 14n, nanos: 0 },
    { seconds: 0n, nanos: -1 },
  ]) {
    const bytes = toBinary(schema, { ...event, occurredAt: { ...event.occurredAt, ...time } });
    expect(() => decodeEvent("EntitlementGranted", bytes)).toThrow("EntitlementGranted.occurred_at is not a time");
  }
});

test("every event message in proto/ is registered under its name", () => {
  const image = readFileSync(new URL("proto/baseline.binpb", import.meta.url));
  const contract = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, image))]
    // A message that is part of an event has no head.
    .filter((type) => type.kind === "message" && type.fields.some(({ name }) => name === "event_id"))
    .map((type) => type.typeName);
  const registered = Object.entries(events).map(([type, { schema }]) => {
    expect(schema.name).toBe(type);
    return schema.typeName;
  });
  const ours = contract.filter((name) => name.startsWith("todoke.events.") && name !== EventHeadSchema.typeName);
  expect(registered.sort()).toEqual(ours.sort());
});

test("an event of any type can be read as EventHead", () => {
  const { version, eventType } = fromBinary(EventHeadSchema, encodeEvent("EntitlementGranted", granted));
  expect({ version, eventType }).toEqual({ version: 12n, eventType: "EntitlementGranted" });

  const headOf = (message: DescMessage) =>
    message.fields
      .filter(({ number }) => number < 16)
      .map(({ name, number, proto }) => [name, number, proto.type, proto.typeName, proto.proto3Optional]);
  for (const { schema } of Object.values(events)) expect(headOf(schema)).toEqual(headOf(EventHeadSchema));
});
