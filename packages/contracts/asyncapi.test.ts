import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { asyncApiText } from "./asyncapi-text.ts";
import { aggregateKeyOf, decodeEvent, type EventType, encodeEvent, events, formatEvent } from "./index.ts";

const document = JSON.parse(asyncApiText());

interface Message {
  readonly payload: object;
  readonly examples: readonly { readonly headers: { readonly aggregate_key: string }; readonly payload: object }[];
}

const messages = Object.entries<Message>(document.components.messages) as [EventType, Message][];

/** Fetched by `npm test`, like the other tools. */
function readSchema(): object {
  const tools = fileURLToPath(new URL("../../tools/node_modules", import.meta.url));
  return JSON.parse(readFileSync(join(tools, "@asyncapi/specs/schemas/3.0.0.json"), "utf8"));
}

test("the document matches the schema of AsyncAPI 3", () => {
  // The schema has its own copy of the schema of JSON Schema.
  const ajv = addFormats.default(new Ajv({ strict: false, meta: false, validateSchema: false }));
  const check = ajv.compile(readSchema());
  expect(check(document) ? [] : check.errors).toEqual([]);
  // The check finds something: a channel needs an object.
  expect(check({ ...document, channels: { Points: "points.events" } })).toBe(false);
});

test("the document has every event with its subject, and no other", () => {
  const listed = Object.values<{ address: string; messages: object }>(document.channels).flatMap(
    ({ address, messages }) => Object.keys(messages).map((type) => [type, address]),
  );
  expect(Object.fromEntries(listed)).toEqual(
    Object.fromEntries(Object.entries(events).map(([type, { subject }]) => [type, subject])),
  );
});

test("the example of every event is encoded and decoded without a change, and has its aggregate key", () => {
  for (const [type, { examples }] of messages) {
    const [{ headers, payload } = { headers: { aggregate_key: "" }, payload: {} }] = examples;
    expect(formatEvent(type, decodeEvent(type, encodeEvent(type, payload)))).toEqual(payload);
    expect([type, headers.aggregate_key]).toEqual([type, aggregateKeyOf(type, payload as Record<string, unknown>)]);
  }
});

test("the example of every event matches its schema", () => {
  const ajv = addFormats.default(new Ajv({ strict: false, allErrors: true }));
  const faults = messages.flatMap(([type, { payload, examples }]) => {
    const check = ajv.compile(payload);
    return check(examples[0]?.payload) ? [] : [type, check.errors];
  });
  expect(faults).toEqual([]);
});
